// Decides whether and when a server that exited unexpectedly is restarted.

const LIMIT = 5;
const WINDOW_MS = 3 * 60_000;
const LONGEST_MS = 8_000;

// Restarts the server at most five times in three minutes, after increasing delays: 0, 1, 2, 4 and 8 seconds.
export class Restarts {
  private ends: number[] = [];

  // Returns the delay before the next start; undefined after too many restarts. `now` is in milliseconds.
  next(now: number): number | undefined {
    this.ends = this.ends.filter((end) => now - end < WINDOW_MS);
    this.ends.push(now);
    const count = this.ends.length;
    if (count > LIMIT) {
      return undefined;
    }
    return count === 1 ? 0 : Math.min(LONGEST_MS, 1000 * 2 ** (count - 2));
  }

  // Resets the count, because the user started the server.
  forget(): void {
    this.ends = [];
  }
}
