// Offsets of rows of different heights, for a list that draws only what is in view.
// No drawing here.

/** Offsets knows where each row begins and which rows are in a range of pixels. */
export class Offsets {
  constructor(heights) {
    this.tops = new Float64Array(heights.length + 1);
    for (let i = 0; i < heights.length; i++) this.tops[i + 1] = this.tops[i] + heights[i];
  }

  get count() { return this.tops.length - 1; }

  get total() { return this.tops[this.count]; }

  top(i) { return this.tops[i]; }

  /** indexAt is the row at a pixel, the first or last if there is none. */
  indexAt(y) {
    let low = 0;
    let high = this.count;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.tops[middle + 1] <= y) low = middle + 1; else high = middle;
    }
    return Math.min(low, Math.max(0, this.count - 1));
  }

  /** range is [first, behind the last) of the rows that touch the pixels from..to. */
  range(from, to) {
    if (this.count === 0) return [0, 0];
    return [this.indexAt(from), Math.min(this.count, this.indexAt(Math.max(from, to)) + 1)];
  }
}
