// Instants of the server, in the time zone of whoever looks.
const twoDigits = number => String(number).padStart(2, '0');

export function clock(millis) {
  const date = new Date(millis);
  return `${twoDigits(date.getHours())}:${twoDigits(date.getMinutes())}:${twoDigits(date.getSeconds())}`;
}

export function clockWithMillis(millis) {
  return `${clock(millis)}.${String(new Date(millis).getMilliseconds()).padStart(3, '0')}`;
}

export const seconds = millis => `${(millis / 1000).toFixed(1)} s`;
