// The end of the conversation stays in view until the reader scrolls away from it.
import { afterEachFrame } from "../text/schedule.js";

const NEAR_PX = 48;

export class Follow {
  // toEnd: a button that is shown while the end is out of view.
  constructor(scroller, toEnd) {
    this.scroller = scroller;
    this.button = toEnd;
    this.following = true;
    // Scroll events come before the frame's other work, so the sizes are known and cost no layout.
    scroller.addEventListener("scroll", () => {
      const { scrollTop, clientHeight, scrollHeight } = scroller;
      this.set(scrollTop + clientHeight > scrollHeight - NEAR_PX);
    }, { passive: true });
    new ResizeObserver(() => this.following && this.jump()).observe(scroller);
    afterEachFrame(() => this.following && this.jump());
    toEnd.onclick = () => {
      this.end();
      scroller.focus({ preventScroll: true });
    };
  }

  set(following) {
    if (this.following === following) return;
    this.following = following;
    this.button.hidden = following;
  }

  jump() {
    this.scroller.scrollTop = this.scroller.scrollHeight;
  }

  end() {
    this.set(true);
    this.jump();
  }
}
