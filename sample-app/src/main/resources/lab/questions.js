// The questions as buttons, each with what is to be expected and, afterwards, what was seen.
import { seconds } from './time.js';

export class Questions {
  constructor(list, said, post) {
    this.list = list;
    this.said = said;
    this.post = post;
    this.items = new Map();
    this.told = new Map();
  }

  fill(questions) {
    if (this.items.size) return;
    for (const question of questions) {
      const item = document.createElement('li');
      item.className = 'card';
      item.dataset.question = question.id;
      const ask = document.createElement('button');
      ask.type = 'button';
      ask.className = 'ask';
      ask.textContent = question.title;
      const expects = document.createElement('p');
      expects.className = 'expects';
      expects.id = `expects-${question.id}`;
      expects.textContent = question.expects;
      ask.setAttribute('aria-describedby', expects.id);
      const seen = document.createElement('p');
      seen.className = 'seen';
      item.append(ask, expects, seen);
      ask.addEventListener('click', () => this.post(`questions/${question.id}`));
      this.items.set(question.id, { item, ask, seen, question });
      this.list.append(item);
    }
  }

  update({ running, answers, ownsDatabase, replicas }) {
    const known = new Map(answers.map(answer => [answer.question, answer]));
    for (const [id, { item, ask, seen, question }] of this.items) {
      ask.disabled = running !== null || replicas.length === 0 || (question.needsOwnDatabase && ownsDatabase === false);
      if (running?.question === id) {
        this.show(item, seen, 'running', 'Now', running.step + '.');
      } else if (known.has(id)) {
        const { ok, seen: sentence, tookMillis } = known.get(id);
        this.show(item, seen, ok, ok ? 'As expected' : 'Not as expected', sentence + (tookMillis === null ? '' : ` (${seconds(tookMillis)})`));
        this.tell(question, ok, sentence);
      }
    }
    this.first = false;
  }

  show(item, seen, state, word, sentence) {
    const text = `${word} ${sentence}`;
    if (item.dataset.ok === String(state) && seen.dataset.text === text) return;
    item.dataset.ok = state;
    seen.dataset.text = text;
    const strong = document.createElement('b');
    strong.textContent = word;
    seen.replaceChildren(strong, sentence);
  }

  /** Once for each answer, and not those that were there before the page was. */
  tell(question, ok, sentence) {
    if (this.told.get(question.id) === sentence) return;
    this.told.set(question.id, sentence);
    if (this.first !== undefined && this.first !== true) {
      this.said.textContent = `${question.title}: ${ok ? 'as expected' : 'not as expected'}. ${sentence}`;
    }
  }
}
