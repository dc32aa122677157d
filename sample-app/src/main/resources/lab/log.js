// The event log: a ring of some thousands, of which only what is visible is in the document.
import { clockWithMillis } from './time.js';

const CAPACITY = 5000;
const KINDS = ['TAKE', 'DENIED', 'RENEW', 'RELEASE', 'LOST', 'DIED', 'REFUSED', 'COMMITTED', 'LAB'];
const OTHER = 'OTHER';
// Most of all events, and seldom what is looked for.
const NOISY = new Set(['DENIED', 'RENEW']);

/** By its time. What a replica tells comes somewhat later than what another has told of the same moment. */
function insert(events, event) {
  let at = events.length;
  while (at > 0 && events[at - 1].at > event.at && events.length - at < 200) at--;
  events.splice(at, 0, event);
}

export class EventLog {
  constructor(box, kinds, filter, count) {
    this.box = box;
    this.count = count;
    this.events = [];
    this.matching = [];
    this.shown = new Set([...KINDS, OTHER].filter(kind => !NOISY.has(kind)));
    this.totals = new Map();
    this.last = 0;
    this.addedAbove = 0;
    this.space = document.createElement('div');
    this.space.className = 'space';
    box.append(this.space);
    this.chips = new Map([...KINDS, OTHER].map(kind => [kind, this.chip(kind, kinds)]));
    this.filter = filter;
    filter.addEventListener('input', () => this.match());
    // Drawn with the next frame, however much is told until then.
    this.changed = true;
    box.addEventListener('scroll', () => { this.changed = true; });
    new ResizeObserver(() => { this.changed = true; }).observe(box);
  }

  chip(kind, kinds) {
    const button = document.createElement('button');
    button.type = 'button';
    button.dataset.kind = kind;
    button.textContent = kind;
    button.setAttribute('aria-pressed', this.shown.has(kind));
    button.addEventListener('click', () => {
      if (!this.shown.delete(kind)) this.shown.add(kind);
      button.setAttribute('aria-pressed', this.shown.has(kind));
      this.match();
    });
    kinds.append(button);
    return button;
  }

  category(event) { return KINDS.includes(event.kind) ? event.kind : OTHER; }

  matches(event) {
    if (!this.shown.has(this.category(event))) return false;
    const words = this.filter.value.trim().toLowerCase().split(/\s+/);
    return words.every(word => !word
      || event.replica?.toLowerCase() === word
      || event.lock?.toLowerCase().includes(word)
      || String(event.fence) === word);
  }

  add(events) {
    let added = 0;
    for (const event of events) {
      if (event.id <= this.last) continue;
      this.last = event.id;
      insert(this.events, event);
      const kind = this.category(event);
      this.totals.set(kind, (this.totals.get(kind) ?? 0) + 1);
      if (this.matches(event)) {
        insert(this.matching, event);
        added++;
      }
    }
    if (this.events.length > CAPACITY) {
      const gone = this.events.splice(0, this.events.length - CAPACITY);
      // In the same order, with some left out.
      let matched = 0;
      for (const event of gone) if (this.matching[matched] === event) matched++;
      this.matching.splice(0, matched);
    }
    // Who has scrolled away from the newest is not to lose the line.
    if (added && !this.held) this.addedAbove += added;
    for (const [kind, chip] of this.chips) {
      const text = `${kind} ${this.totals.get(kind) ?? 0}`;
      if (chip.textContent !== text) chip.textContent = text;
    }
    if (!this.held) this.changed = true;
  }

  match() {
    this.matching = this.events.filter(event => this.matches(event));
    this.box.scrollTop = 0;
    this.addedAbove = 0;
    this.changed = true;
  }

  hold(held) {
    this.held = held;
    this.frozen = held ? [...this.matching] : null;
    this.changed = true;
  }

  get lineHeight() { return this.box.clientWidth < 600 ? 44 : 24; }

  draw() {
    if (!this.changed) return;
    this.changed = false;
    const list = this.held && this.frozen ? this.frozen : this.matching;
    const height = this.lineHeight;
    this.space.style.height = `${list.length * height}px`;
    if (this.addedAbove && this.box.scrollTop > 4) this.box.scrollTop += this.addedAbove * height;
    this.addedAbove = 0;
    const first = Math.max(0, Math.floor(this.box.scrollTop / height) - 4);
    const lines = Math.ceil(this.box.clientHeight / height) + 8;
    const nodes = [];
    for (let i = first; i < Math.min(list.length, first + lines); i++) {
      nodes.push(this.line(list[list.length - 1 - i], i, height, list.length));
    }
    this.space.replaceChildren(...nodes);
    this.count.textContent = `${list.length} of the last ${this.events.length} events`;
  }

  line(event, index, height, length) {
    const line = document.createElement('div');
    line.className = `line ${event.kind}`;
    line.setAttribute('role', 'listitem');
    line.setAttribute('aria-posinset', index + 1);
    line.setAttribute('aria-setsize', length);
    line.style.top = `${index * height}px`;
    const cells = {
      at: clockWithMillis(event.at),
      kind: event.kind,
      replica: event.replica ?? '',
      lock: event.lock ?? '',
      fence: event.fence ?? '',
      detail: [event.reason, event.detail].filter(Boolean).join(': '),
    };
    for (const [name, text] of Object.entries(cells)) {
      const cell = document.createElement('span');
      cell.className = name;
      cell.textContent = text;
      if (name === 'detail' || name === 'lock') cell.title = text;
      line.append(cell);
    }
    return line;
  }
}
