// One stream of server-sent events in; what is asked for goes out as POST requests.
import { Timeline } from './timeline.js';
import { EventLog } from './log.js';
import { Locks } from './locks.js';
import { Questions } from './questions.js';
import { clock } from './time.js';

const JOBS = ['Reconciliation.reconcile', 'ledger.close', 'orders.rollup', 'mail.digest'];
const ACTIONS = [
  ['kill', 'Kill', 'kill -9', state => state !== 'down'],
  ['freeze', 'Freeze', 'SIGSTOP', state => state === 'up'],
  ['thaw', 'Thaw', 'SIGCONT', state => state === 'frozen'],
  ['cut', 'Cut', 'a network that swallows everything', state => state === 'up'],
  ['mend', 'Mend', 'the network is whole again', state => state === 'cut'],
  ['terminate', 'End sessions', 'pg_terminate_backend', state => state === 'up'],
  ['stop', 'Stop', 'in good order, SIGTERM', state => state === 'up'],
  ['start', 'Start', 'again', state => state === 'down'],
];
// Of each pair one is shown: what can be done now.
const HIDDEN = { thaw: 'frozen', mend: 'cut', start: 'down' };
const INSTEAD = { freeze: 'frozen', cut: 'cut', stop: 'down' };
const BACK = { freeze: 'thaw', thaw: 'freeze', cut: 'mend', mend: 'cut', start: 'stop' };

const $ = id => document.getElementById(id);
const problem = $('problem');
const timeline = new Timeline($('timeline'), $('timeline-words'), JOBS);
const log = new EventLog($('log'), $('kinds'), $('filter'), $('log-count'));
const locks = new Locks($('locks').tBodies[0]);
const questions = new Questions($('questions'), $('said'), post);

async function post(path) {
  try {
    const response = await fetch(path, { method: 'POST', headers: { 'X-Lab': '1' } });
    problem.textContent = response.ok ? '' : await response.text();
  } catch {
    problem.textContent = 'The lab does not answer. Was it stopped?';
  }
}

// ---- replicas

const cards = new Map();

function card(name) {
  const box = document.createElement('article');
  box.className = 'card replica';
  box.dataset.replica = name;
  box.tabIndex = -1;
  box.setAttribute('aria-label', `Replica ${name}`);
  const title = document.createElement('h3');
  const pill = document.createElement('span');
  pill.className = 'pill';
  const pid = document.createElement('small');
  title.append(`Replica ${name}`, pill, pid);
  const row = document.createElement('div');
  row.className = 'buttons';
  const buttons = ACTIONS.map(([action, label, what, when]) => {
    const button = document.createElement('button');
    button.type = 'button';
    button.textContent = label;
    button.title = what;
    button.dataset.action = action;
    button.setAttribute('aria-label', `${label} replica ${name}`);
    if (action === 'kill') button.className = 'grave';
    button.addEventListener('click', () => post(`replicas/${name}/${action}`));
    row.append(button);
    return { action, button, when };
  });
  box.append(title, row);
  $('replicas').append(box);
  return { box, pill, pid, buttons };
}

function showReplicas(replicas) {
  for (const { name, state, pid } of replicas) {
    if (!cards.has(name)) cards.set(name, card(name));
    const shown = cards.get(name);
    if (shown.box.dataset.state === state && shown.pid.textContent === (pid === null ? '' : `process ${pid}`)) continue;
    shown.box.dataset.state = state;
    shown.pill.dataset.state = state;
    shown.pill.textContent = state;
    shown.pid.textContent = pid === null ? '' : `process ${pid}`;
    for (const { action, button, when } of shown.buttons) {
      const focused = document.activeElement === button;
      button.disabled = !when(state);
      button.hidden = (HIDDEN[action] !== undefined && HIDDEN[action] !== state) || INSTEAD[action] === state;
      // Whoever has frozen it by the keyboard is to find "Thaw" under the fingers, and never "Kill".
      if (focused && (button.hidden || button.disabled)) queueMicrotask(() => {
        const next = shown.box.querySelector(`button[data-action=${BACK[action] ?? 'start'}]:not([hidden]):not(:disabled)`);
        (next ?? shown.box).focus();
      });
    }
  }
}

// ---- the database

let databaseStopped = false;
let lastAnswer = null;

function showDatabase({ report, ownsDatabase, databaseStopped: stopped }) {
  const state = report.databaseAnswers ? 'up' : stopped ? 'stopped' : ownsDatabase === null ? 'starting' : 'down';
  const pill = $('database');
  if (pill.dataset.state !== state) {
    pill.dataset.state = state;
    pill.textContent = `PostgreSQL ${{ up: 'up', stopped: 'stopped', starting: 'starting', down: 'does not answer' }[state]}`;
  }
  if (report.databaseAnswers) lastAnswer = report.now;
  $('locks').classList.toggle('stale', !report.databaseAnswers);
  const note = report.databaseAnswers || lastAnswer === null ? '' : `PostgreSQL does not answer. This is how they were at ${clock(lastAnswer)}.`;
  if ($('locks-note').textContent !== note) $('locks-note').textContent = note;
  databaseStopped = stopped;
  const button = $('database-switch');
  button.hidden = ownsDatabase !== true;
  const label = stopped ? 'Start' : 'Stop';
  if (button.textContent !== label) {
    button.textContent = label;
    button.setAttribute('aria-label', `${label} PostgreSQL`);
  }
}

$('database-switch').addEventListener('click', () => post(`database/${databaseStopped ? 'start' : 'stop'}`));

// ---- the stream

let serverAhead = null;
let held = null;
let replicasNow = [];

const serverNow = () => performance.now() + serverAhead;

function take(message) {
  const { report, replicas } = message;
  // The earliest messages are the least delayed: the clock is only ever set forward, or when it has stepped.
  const ahead = report.now - performance.now();
  if (serverAhead === null || ahead > serverAhead || serverAhead - ahead > 1000) serverAhead = ahead;
  replicasNow = replicas;
  timeline.setReplicas(replicas.map(replica => replica.name));
  report.runs.forEach(run => timeline.run(run));
  report.spells.forEach(spell => timeline.spell(spell));
  report.skips.forEach(skip => timeline.skip(skip));
  log.add(report.events);
  locks.update(report.locks);
  locks.draw(serverNow());
  showReplicas(replicas);
  showDatabase(message);
  if (message.questions) questions.fill(message.questions);
  questions.update(message);
}

// For the tests, which tell the page of an hour in a moment.
globalThis.lab = { take, draw: () => { timeline.draw(serverNow()); log.draw(); } };

const stream = new EventSource('events');
let lab = null;
stream.addEventListener('whole', event => {
  const message = JSON.parse(event.data);
  // Another lab at the same address knows nothing of what is on this page.
  if (lab !== null && lab !== message.lab) {
    location.reload();
    return;
  }
  lab = message.lab;
  problem.textContent = '';
  take(message);
});
stream.addEventListener('news', event => take(JSON.parse(event.data)));
stream.addEventListener('error', () => { problem.textContent = 'The lab does not answer. Was it stopped? This page goes on when it is back.'; });

// ---- frames

const still = matchMedia('(prefers-reduced-motion: reduce)');

function frame() {
  if (serverAhead !== null) {
    const now = serverNow();
    locks.draw(now);
    timeline.draw(held ?? now);
    log.draw();
    const text = clock(now);
    if ($('clock').textContent !== text) $('clock').textContent = text;
  }
  // Twenty frames a second are smooth enough at this pace, and leave the machine to the replicas.
  setTimeout(() => requestAnimationFrame(frame), still.matches ? 1000 : 50);
}
frame();
setInterval(() => timeline.tell(replicasNow), 5000);

// ---- how it looks

$('hold').addEventListener('click', () => {
  held = held === null ? serverNow() : null;
  $('hold').setAttribute('aria-pressed', held !== null);
  log.hold(held !== null);
});

const THEMES = ['auto', 'light', 'dark'];
function setTheme(theme) {
  if (theme === 'auto') delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme;
  $('theme').textContent = `Theme: ${theme}`;
}
let theme = localStorage.getItem('theme') ?? 'auto';
setTheme(theme);
$('theme').addEventListener('click', () => {
  theme = THEMES[(THEMES.indexOf(theme) + 1) % THEMES.length];
  localStorage.setItem('theme', theme);
  setTheme(theme);
});
