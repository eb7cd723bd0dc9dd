// A queue of tasks that run one after the other.

export class Turns {
  private last: Promise<unknown> = Promise.resolve();

  // Runs the work after all earlier work has finished, whether it succeeded or failed.
  take<T>(work: () => Promise<T>): Promise<T> {
    const turn = this.last.then(work, work);
    this.last = turn.catch(() => undefined);
    return turn;
  }
}
