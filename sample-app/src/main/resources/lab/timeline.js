// One lane per replica, one row in it per job, one bar per run. Everything is placed once, in seconds since the page was
// opened, inside a group that moves to the left as a whole: a frame costs one transform and the widths of what still runs.
import { clock, seconds } from './time.js';

const SVG = 'http://www.w3.org/2000/svg';
const WINDOW = 60_000;
const ROW = 15;
const BAR = 10;
const PADDING = 7;
const AXIS = 22;
const REST = 'on demand';

function element(name, attributes = {}, text) {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  if (text !== undefined) made.textContent = text;
  return made;
}

export class Timeline {
  constructor(svg, words, jobs) {
    this.svg = svg;
    this.words = words;
    this.rows = [...jobs, REST];
    this.lanes = [];
    this.runs = new Map();
    this.spells = new Map();
    this.skips = [];
    this.skipsKnown = new Set();
    this.marks = new Map();
    this.moves = new Map();
    this.now = 0;
    this.origin = null;
    new ResizeObserver(() => this.layOut()).observe(svg);
  }

  setReplicas(names) {
    if (names.join() !== this.lanes.join()) {
      this.lanes = names;
      this.layOut();
    }
  }

  // ---- places

  get laneHeight() { return this.rows.length * ROW + 2 * PADDING; }
  x(at) { return (at - this.origin) / 1000 * this.scale; }
  laneTop(replica) { return this.lanes.indexOf(replica) * this.laneHeight; }
  rowTop(replica, lock) {
    const row = this.rows.indexOf(lock);
    return this.laneTop(replica) + PADDING + (row < 0 ? this.rows.length - 1 : row) * ROW + (ROW - BAR) / 2;
  }

  layOut() {
    const width = this.svg.clientWidth;
    if (!width || !this.lanes.length || this.origin === null) return;
    const narrow = width < 600;
    this.gutter = narrow ? 106 : 206;
    this.plot = width - this.gutter - 14;
    this.scale = this.plot / (WINDOW / 1000);
    const height = this.lanes.length * this.laneHeight;
    this.svg.setAttribute('viewBox', `0 0 ${width} ${height + AXIS}`);
    this.svg.setAttribute('height', height + AXIS);
    const clip = element('clipPath', { id: 'plot' });
    clip.append(element('rect', { x: this.gutter, y: 0, width: this.plot + 14, height }));
    // The first time of the axis is not cut in the middle.
    clip.append(element('rect', { x: 0, y: height, width, height: AXIS }));
    const clipped = element('g', { 'clip-path': 'url(#plot)' });
    this.moving = element('g');
    this.behind = element('g');
    this.between = element('g');
    this.front = element('g');
    this.moving.append(this.behind, this.between, this.front);
    clipped.append(this.moving);
    this.svg.replaceChildren(clip, clipped, ...this.labels(width, narrow));
    for (const kept of [this.runs, this.spells, this.marks, this.moves]) for (const item of kept.values()) item.nodes = null;
    for (const skip of this.skips) skip.node = null;
    this.draw();
  }

  labels(width, narrow) {
    const made = [];
    this.lanes.forEach((name, lane) => {
      const top = lane * this.laneHeight;
      if (lane) made.push(element('line', { class: 'rule', x1: 0, x2: width, y1: top, y2: top }));
      made.push(element('text', { class: 'lane-name', x: 12, y: top + PADDING + 14 }, name));
      this.rows.forEach((job, row) => {
        const y = top + PADDING + row * ROW + ROW / 2 + 4;
        const text = narrow && job.length > 13 ? job.split('.')[0].slice(0, 14) : job;
        made.push(element('text', { x: this.gutter - 8, y, 'text-anchor': 'end' }, text));
      });
    });
    const bottom = this.lanes.length * this.laneHeight;
    made.push(element('line', { class: 'rule', x1: 0, x2: width, y1: bottom, y2: bottom }));
    made.push(element('line', { class: 'rule', x1: this.gutter, x2: this.gutter, y1: 0, y2: bottom }));
    made.push(element('line', { class: 'rule now', x1: this.gutter + this.plot, x2: this.gutter + this.plot, y1: 0, y2: bottom }));
    return made;
  }

  // ---- what is told

  run(run) {
    const known = this.runs.get(run.id);
    if (known) Object.assign(known, run);
    else this.runs.set(run.id, { ...run, nodes: null });
    if (!known) this.findMove(this.runs.get(run.id));
  }

  /** The run before it on another replica, if that did not end well, is where the job was moved from. */
  findMove(run) {
    let before = null;
    for (const other of this.runs.values()) {
      if (other.lock === run.lock && other.fence < run.fence && (!before || other.fence > before.fence)) before = other;
    }
    if (before && before.replica !== run.replica) this.moves.set(run.id, { from: before, to: run, nodes: null });
  }

  spell(spell) {
    const known = this.spells.get(spell.id);
    if (known) Object.assign(known, spell);
    else this.spells.set(spell.id, { ...spell, nodes: null });
  }

  skip(skip) {
    const key = `${skip.replica} ${skip.lock} ${skip.at}`;
    if (this.skipsKnown.has(key)) return;
    this.skipsKnown.add(key);
    this.skips.push({ ...skip, key, node: null });
  }

  // ---- frames

  draw(now = this.now) {
    if (this.origin === null) {
      this.origin = now;
      this.now = now;
      this.layOut();
      return;
    }
    this.now = now;
    if (!this.moving) return;
    this.forget(now - WINDOW - 2000);
    this.moving.setAttribute('transform', `translate(${this.gutter + this.plot - this.x(now)} 0)`);
    this.drawMarks(now);
    for (const spell of this.spells.values()) this.drawSpell(spell, now);
    for (const skip of this.skips) if (!skip.node) this.drawSkip(skip);
    for (const run of this.runs.values()) this.drawRun(run, now);
    for (const move of this.moves.values()) this.drawMove(move);
  }

  forget(before) {
    const drop = (map, isOld) => {
      for (const [key, item] of map) {
        if (isOld(item)) {
          item.nodes?.forEach(node => node.remove());
          map.delete(key);
        }
      }
    };
    drop(this.runs, run => run.end !== null && Math.max(run.end, run.leaseEnd ?? 0) < before);
    drop(this.spells, spell => spell.to !== null && spell.to < before);
    drop(this.marks, mark => mark.at < before);
    drop(this.moves, move => move.to.start < before);
    while (this.skips.length && this.skips[0].at < before) {
      const skip = this.skips.shift();
      this.skipsKnown.delete(skip.key);
      skip.node?.remove();
    }
  }

  drawMarks(now) {
    const bottom = this.lanes.length * this.laneHeight;
    for (let at = Math.ceil((now - WINDOW) / 10_000) * 10_000; at <= now; at += 10_000) {
      const known = this.marks.get(at);
      if (known?.nodes) continue;
      const x = this.x(at);
      const nodes = [
        element('line', { class: 'rule row', x1: x, x2: x, y1: 0, y2: bottom + 4 }),
        element('text', { x, y: bottom + 15, 'text-anchor': 'middle' }, this.gutter > 150 || at % 20_000 === 0 ? clock(at) : ''),
      ];
      this.behind.append(...nodes);
      this.marks.set(at, { at, nodes });
    }
  }

  drawSpell(spell, now) {
    if (!spell.nodes) {
      const top = this.laneTop(spell.replica);
      const rect = element('rect', { class: `spell ${spell.kind}`, x: this.x(spell.from), y: top + 1, height: this.laneHeight - 2 });
      const name = element('text', { class: 'spell-name', x: this.x(spell.from) + 4, y: top + this.laneHeight - PADDING - 1 }, spell.kind);
      spell.nodes = [rect, name];
      this.behind.append(rect, name);
    }
    const width = this.x(spell.to ?? now) - this.x(spell.from);
    spell.nodes[0].setAttribute('width', Math.max(0, width));
    spell.nodes[1].setAttribute('visibility', width > 44 ? 'visible' : 'hidden');
  }

  drawSkip(skip) {
    const y = this.rowTop(skip.replica, skip.lock);
    skip.node = element('rect', { class: 'skip', x: this.x(skip.at), y: y + 2, width: 1.5, height: BAR - 4 });
    this.between.append(skip.node);
  }

  drawRun(run, now) {
    const settled = run.end !== null && run.nodes?.drawn === `${run.state}${run.end}${run.leaseEnd}${run.lostAt}`;
    if (settled) return;
    const y = this.rowTop(run.replica, run.lock);
    if (!run.nodes) {
      const group = element('g', { 'data-lock': run.lock, 'data-fence': run.fence, 'data-replica': run.replica });
      const attributes = { y, height: BAR, rx: 2 };
      group.append(
        element('rect', { class: 'after', ...attributes }),
        element('rect', { class: 'body', ...attributes }),
        element('title'));
      this.between.append(group);
      run.nodes = [group];
    }
    const group = run.nodes[0];
    const [after, body, title] = group.children;
    const state = run.state.toLowerCase();
    const end = run.end ?? now;
    group.setAttribute('class', `run ${state}`);
    group.setAttribute('data-state', state);
    const bodyEnd = state === 'lost' && run.lostAt !== null ? Math.min(run.lostAt, end) : end;
    // However short, a run is to be told from a skip.
    this.place(body, run.start, bodyEnd, 4);
    if (state === 'lost') this.place(after, bodyEnd, end);
    if (state === 'died') this.place(after, end, Math.max(end, run.leaseEnd ?? end));
    title.textContent = `${run.lock} on ${run.replica}, ${state}, fence ${run.fence}, ${clock(run.start)}, ${seconds(end - run.start)}`;
    run.nodes.drawn = `${run.state}${run.end}${run.leaseEnd}${run.lostAt}`;
  }

  place(rect, from, to, least = 1) {
    rect.setAttribute('x', this.x(from));
    rect.setAttribute('width', Math.max(least, this.x(to) - this.x(from)));
  }

  /** Drawn only when the run before was lost or died: that a job changes its replica otherwise is nothing to be told. */
  drawMove(move) {
    const wasLost = move.from.state === 'LOST' || move.from.state === 'DIED';
    if (!wasLost || move.nodes) return;
    const { from, to } = move;
    const at = from.state === 'LOST' ? from.lostAt ?? from.start : from.end ?? from.start;
    const x1 = this.x(Math.min(at, to.start));
    const y1 = this.rowTop(from.replica, from.lock) + BAR / 2;
    const x2 = this.x(to.start);
    const y2 = this.rowTop(to.replica, to.lock) + BAR / 2;
    const bend = Math.max(14, (x2 - x1) / 2);
    const path = element('path', { class: 'move', d: `M ${x1} ${y1} C ${x1 + bend} ${y1}, ${x2 - bend} ${y2}, ${x2} ${y2}` });
    const name = element('text', { class: 'move-name', x: x2 - 6, y: y2 + 4, 'text-anchor': 'end' }, `${from.replica} → ${to.replica} ${clock(to.start)}`);
    move.nodes = [path, name];
    this.front.append(path, name);
  }

  /** What the picture shows, for who does not see it. */
  tell(replicas) {
    const sentences = replicas.map(({ name, state }) => {
      const runs = [...this.runs.values()].filter(run => run.replica === name);
      const running = runs.filter(run => run.state === 'RUNNING').map(run => run.lock);
      const lost = runs.filter(run => run.state === 'LOST').length;
      return `Replica ${name} is ${state}, ran ${runs.length} times in the last minute`
        + (lost ? `, lost ${lost}` : '') + (running.length ? `, and runs ${running.join(' and ')}` : '') + '.';
    });
    this.words.textContent = sentences.join(' ');
  }
}
