// Work on the document happens once a frame, in pieces, however fast text comes. So each frame has one layout, and the page always
// answers.

const FRAME_MS = 10;

const waiting = new Set();
const afterwards = new Set();
let asked = false;

function frame() {
  asked = false;
  const end = performance.now() + FRAME_MS;
  for (const work of waiting) {
    waiting.delete(work);
    if (work()) waiting.add(work);
    if (performance.now() > end) break;
  }
  for (const work of afterwards) work();
  if (waiting.size) ask();
}

function ask() {
  if (asked) return;
  asked = true;
  requestAnimationFrame(frame);
}

// work(): whether more is left. It is called in the next frame, once even if it is scheduled again before.
export function schedule(work) {
  waiting.add(work);
  ask();
}

// work() is called at the end of every frame that has had other work.
export function afterEachFrame(work) {
  afterwards.add(work);
}
