// The table of locks: rows are made once; a cell is touched only when what it says has changed.
import { clock, seconds } from './time.js';

function make(tag, className, parent) {
  const made = document.createElement(tag);
  if (className) made.className = className;
  parent.append(made);
  return made;
}

function say(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

export class Locks {
  constructor(body) {
    this.body = body;
    this.rows = new Map();
  }

  update(locks) {
    const names = new Set(locks.map(lock => lock.name));
    for (const [name, row] of this.rows) {
      if (!names.has(name)) {
        row.tr.remove();
        this.rows.delete(name);
      }
    }
    for (const lock of locks) {
      const row = this.rows.get(lock.name) ?? this.row(lock.name);
      row.lock = lock;
      this.show(row);
    }
  }

  row(name) {
    const tr = document.createElement('tr');
    tr.dataset.lock = name;
    const first = make('td', '', tr);
    const row = { tr, full: 4000 };
    say(make('span', 'lockname', first), name);
    row.kind = make('small', '', first);
    const holder = make('td', '', tr);
    row.holder = make('span', 'holder', holder);
    row.fence = make('small', 'fence', holder);
    const lease = make('td', '', tr);
    row.meter = make('div', 'meter lease', lease);
    row.fill = make('i', '', row.meter);
    row.left = make('small', '', lease);
    row.progress = make('div', 'meter progress never', lease);
    row.progressFill = make('i', '', row.progress);
    row.data = make('small', 'data', lease);
    const last = make('td', '', tr);
    row.tick = make('span', 'tick', last);
    row.last = make('small', '', last);
    row.waiting = make('td', 'waits', tr);
    this.rows.set(name, row);
    const after = [...this.rows.keys()].sort().find(other => other > name && this.rows.get(other).tr.isConnected);
    this.body.insertBefore(tr, after ? this.rows.get(after).tr : null);
    return row;
  }

  show(row) {
    const { lock } = row;
    const held = lock.state === 'HELD';
    row.tr.dataset.held = held;
    row.tr.dataset.holder = held ? lock.holder ?? '' : '';
    row.tr.dataset.strategy = lock.strategy;
    say(row.kind, lock.strategy.toLowerCase());
    say(row.holder, held ? `Replica ${lock.holder}` : lock.paused !== null ? 'paused' : lock.state === 'EXPIRED' ? `expired (${lock.holder})` : lock.state.toLowerCase());
    say(row.fence, lock.fence === null ? '' : `fence ${lock.fence}`);
    const progress = held && /(\d+) of (\d+)/.exec(lock.data ?? '');
    row.progress.classList.toggle('none', !progress);
    if (progress) row.progress.classList.remove('never');
    if (progress) row.progressFill.style.width = `${100 * progress[1] / progress[2]}%`;
    say(row.data, held ? lock.data ?? '' : '');
    say(row.tick, lock.lastTick === null ? lock.completed.length ? `done: version ${lock.completed.join(', ')}` : lock.since === null ? '–' : `began ${clock(lock.since)}` : `tick ${clock(lock.lastTick)}`);
    say(row.last, lock.lastFinished === null ? '' : `${lock.lastHolder ?? ''} ${lock.lastOutcome?.toLowerCase() ?? ''} ${clock(lock.lastFinished)}`);
    say(row.waiting, lock.waiting.length ? lock.waiting.join(', ') : '');
  }

  /** The leases run down between two messages too. */
  draw(now) {
    for (const row of this.rows.values()) {
      const { lock } = row;
      const held = lock.state === 'HELD';
      const left = held && lock.until !== null ? Math.max(0, lock.until - now) : null;
      if (left !== null) row.full = Math.max(row.full, left);
      row.meter.classList.toggle('none', left === null);
      row.meter.classList.toggle('low', left !== null && left < row.full / 3);
      row.fill.style.width = left === null ? '0' : `${100 * left / row.full}%`;
      say(row.left, left !== null ? `${seconds(left)} left` : held ? 'with its session' : '');
    }
  }
}
