// Whether a server that ended by itself is started again, and when.

const LIMIT = 5;
const WINDOW_MS = 3 * 60_000;
const LONGEST_MS = 8_000;

// Five times in three minutes, each time after a longer wait: at once, then 1, 2, 4, 8 seconds.
export class Restarts {
  private ends: number[] = [];

  // `now` in milliseconds. The wait before the next start; nothing when it is hopeless.
  next(now: number): number | undefined {
    this.ends = this.ends.filter((end) => now - end < WINDOW_MS);
    this.ends.push(now);
    const count = this.ends.length;
    if (count > LIMIT) {
      return undefined;
    }
    return count === 1 ? 0 : Math.min(LONGEST_MS, 1000 * 2 ** (count - 2));
  }

  // The user started it: what was is forgotten.
  forget(): void {
    this.ends = [];
  }
}
