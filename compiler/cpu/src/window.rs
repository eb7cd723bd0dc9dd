//! Windowed sums, row by row along an axis that is contiguous in the result: for example depthwise convolutions.

use crate::runtime::Routine;
use crate::simd::{self, Vector, widest};

/// The number of vectors of sums that are computed at a time, which hides the latency of additions.
const BLOCK: usize = 4;

/// The maximal number of sets of masks of unusual rows ([`Usual`]) that are cached at a time. Rows with equal values of
/// the `moving` conditions share a set. Unusual rows are typically the first and last rows of an image, whose windows
/// overlap the padding.
const MOST_KNOWN: usize = 16;

/// The head of the arguments, as generated code writes them. It is followed by the axes, by the loops over taps, and by
/// the conditions' values in the first iteration of all loops. An axis or loop has [`Axis::WORDS`] words and one word
/// per condition.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct Head {
    a: *const f32,
    b: *const f32,
    c: *mut f32,
    accumulate: i64,
    axes: i64,
    taps: i64,
    conditions: i64,
}

/// The size of a [`Head`] in 8-byte words.
pub(crate) const WORDS: usize = size_of::<Head>() / 8;

/// Returns the routine for windowed sums of `float32`.
pub(crate) fn routine() -> Routine {
    Routine { symbol: "rx_window_f32", address: window_f32 as *const u8 }
}

/// An axis, or a loop over taps: its extent, its strides in elements, and the step that one iteration adds to each
/// condition's value.
#[derive(Clone, Copy)]
struct Axis<'w> {
    extent: i64,
    a: i64,
    b: i64,
    c: i64,
    conditions: &'w [i64],
}

impl Axis<'_> {
    const WORDS: usize = 4;
}

/// Computes windowed sums and returns 0. `head` is a [`Head`] followed by its words. The addresses of `b` and `c`, and
/// those of `a` where the conditions hold, lie within their buffers, as [`rx_loops::WindowedSum`] guarantees.
unsafe extern "C" fn window_f32(head: *const Head) -> i64 {
    // SAFETY: generated code passes the address of a head it has just written, followed by its words.
    let (head, words) = unsafe {
        let [axes, taps, conditions] = [(*head).axes, (*head).taps, (*head).conditions].map(|count| count as usize);
        let count = (axes + taps) * (Axis::WORDS + conditions) + conditions;
        (*head, std::slice::from_raw_parts(head.add(1).cast::<i64>(), count))
    };
    let conditions = head.conditions as usize;
    let (loops, values) = words.split_at(words.len() - conditions);
    let loops: Vec<Axis<'_>> = loops
        .chunks_exact(Axis::WORDS + conditions)
        .map(|words| Axis { extent: words[0], a: words[1], b: words[2], c: words[3], conditions: &words[4..] })
        .collect();
    let (axes, taps) = loops.split_at(head.axes as usize);
    if let Some((lane, outer)) = axes.split_last()
        && axes.iter().all(|axis| axis.extent > 0)
    {
        widest(Call { head, lane: *lane, outer, taps: Tap::all(taps, conditions), values: values.to_vec() });
    }
    0
}

/// A term of every sum: one position in the window.
struct Tap {
    a: i64,
    b: i64,
    /// For each condition, the difference between its value at this tap and its value at the first tap.
    conditions: Vec<i64>,
    /// The range of elements of a row, end exclusive, in which the tap satisfies the conditions that are the same in
    /// every row.
    always: (i64, i64),
}

impl Tap {
    /// Returns the taps for all values of the tap loops. The last loop is the fastest.
    fn all(loops: &[Axis<'_>], conditions: usize) -> Vec<Tap> {
        let mut taps = vec![Tap { a: 0, b: 0, conditions: vec![0; conditions], always: (0, 0) }];
        for axis in loops {
            let each = taps.iter().flat_map(|tap| {
                (0..axis.extent).map(|at| Tap {
                    a: tap.a.wrapping_add(at.wrapping_mul(axis.a)),
                    b: tap.b.wrapping_add(at.wrapping_mul(axis.b)),
                    conditions: moved(&tap.conditions, axis, at),
                    always: (0, 0),
                })
            });
            taps = each.collect();
        }
        taps
    }

    /// Returns the part of `range`, a range of elements of a row, in which the conditions with the indices `which`
    /// hold. `values` has the value of each condition at the row's first element and the first tap. The result is empty
    /// if its end is not above its begin.
    ///
    /// For example, if a condition has the value −3 for this tap and 2 more for each element, it holds from element 2:
    /// −3 + 2 · 2 = 1. If the value is 5 and 2 less for each element, it holds for the elements 0 to 2 (end 3).
    fn within(&self, which: &[usize], values: &[i64], lane: &Axis<'_>, range: (i64, i64)) -> (i64, i64) {
        let (mut first, mut end) = range;
        for at in which {
            let value = values[*at].wrapping_add(self.conditions[*at]);
            match lane.conditions[*at] {
                0 if value < 0 => end = i64::MIN,
                0 => {}
                // `value + by · element` is nonnegative if `element` is at least `-value / by`, rounded up.
                by if by > 0 => first = first.max(value.div_euclid(by).wrapping_neg()),
                by => end = end.min(value.wrapping_div_euclid(by.wrapping_neg()).saturating_add(1)),
            }
        }
        (first, end)
    }
}

/// Returns the conditions' values after `by` iterations of a loop. Sums wrap, as in generated code.
fn moved(values: &[i64], axis: &Axis<'_>, by: i64) -> Vec<i64> {
    values.iter().zip(axis.conditions).map(|(value, step)| value.wrapping_add(by.wrapping_mul(*step))).collect()
}

/// A vector of a row's sums: the addresses for its first lane, and its masks.
#[derive(Clone, Copy)]
struct Part {
    a: *const f32,
    b: *const f32,
    c: *mut f32,
    /// The number of its lanes that are in the row.
    count: usize,
    /// The position of its first mask in the list of masks ([`Call::push_masks`]). Its masks, one for each tap, are
    /// adjacent there.
    masks: usize,
}

/// A call of the routine.
struct Call<'w> {
    head: Head,
    /// The axis along a row.
    lane: Axis<'w>,
    /// The axes that enumerate the rows.
    outer: &'w [Axis<'w>],
    taps: Vec<Tap>,
    /// The conditions' values at the current row's first element and the first tap.
    values: Vec<i64>,
}

impl simd::Routine for Call<'_> {
    type Output = ();

    #[inline(always)]
    unsafe fn run<V: Vector>(mut self) {
        let per_row = (self.lane.extent as usize).div_ceil(V::LANES);
        let usual = Usual::of(&self);
        for tap in &mut self.taps {
            tap.always = tap.within(&usual.fixed, &self.values, &self.lane, (0, self.lane.extent));
        }
        // The masks of a usual row, followed by those of unusual rows, which are cached by the values of the `moving`
        // conditions.
        let mut masks = Vec::new();
        self.push_masks(V::LANES, &[], &mut masks);
        let in_row = masks.len();
        let mut unusual: Vec<(Vec<i64>, usize)> = Vec::new();
        let Head { a, b, c, .. } = self.head;
        let (mut parts, mut waiting) = ([Part { a, b, c, count: 0, masks: 0 }; BLOCK], 0);
        let mut index = vec![0i64; self.outer.len()];
        loop {
            let mut first_mask = 0;
            if !usual.is(&self.values) {
                let same = |known: &&(Vec<i64>, usize)| {
                    usual.moving.iter().zip(&known.0).all(|(at, value)| self.values[*at] == *value)
                };
                first_mask = match unusual.iter().find(same) {
                    Some((_, first)) => *first,
                    None => {
                        if unusual.len() >= MOST_KNOWN {
                            // Flush the pending vectors before their masks are discarded.
                            // SAFETY: the caller's promise.
                            unsafe { self.sum_waiting::<V>(&mut parts, &mut waiting, &masks) };
                            unusual.clear();
                            masks.truncate(in_row);
                        }
                        unusual.push((usual.moving.iter().map(|at| self.values[*at]).collect(), masks.len()));
                        self.push_masks(V::LANES, &usual.moving, &mut masks);
                        unusual[unusual.len() - 1].1
                    }
                };
            }
            for vector in 0..per_row {
                let at = (vector * V::LANES) as i64;
                parts[waiting] = Part {
                    a: self.head.a.wrapping_offset((at * self.lane.a) as isize),
                    b: self.head.b.wrapping_offset((at * self.lane.b) as isize),
                    c: self.head.c.wrapping_offset(at as isize),
                    count: (self.lane.extent - at).min(V::LANES as i64) as usize,
                    masks: first_mask + vector * self.taps.len(),
                };
                waiting += 1;
                if waiting == BLOCK {
                    // SAFETY: the caller's promise.
                    unsafe { self.sum_waiting::<V>(&mut parts, &mut waiting, &masks) };
                }
            }
            if !self.next_row(&mut index) {
                break;
            }
        }
        // SAFETY: the caller's promise.
        unsafe { self.sum_waiting::<V>(&mut parts, &mut waiting, &masks) };
    }
}

/// Inserts a 0 bit above each of the lower 16 bits, for masks of every other element. For example, `0b1011` becomes
/// `0b1000101`.
fn spread(mask: u32) -> u32 {
    let bits = (mask | mask << 8) & 0x00ff_00ff;
    let bits = (bits | bits << 4) & 0x0f0f_0f0f;
    let bits = (bits | bits << 2) & 0x3333_3333;
    (bits | bits << 1) & 0x5555_5555
}

/// The conditions, divided into those that depend on the row (`moving`) and those that do not (`fixed`).
///
/// A row is usual if no `moving` condition depends on the element and each holds at all taps. Its masks then depend on
/// the `fixed` conditions only, so all usual rows share them.
struct Usual {
    /// The conditions that do not depend on the row.
    fixed: Vec<usize>,
    /// The conditions that depend on the row.
    moving: Vec<usize>,
    /// For each moving condition, the least value at the row's first element and the first tap with which it holds at
    /// all taps; `None` if the condition also depends on the element.
    least: Vec<Option<i64>>,
}

impl Usual {
    fn of(call: &Call<'_>) -> Usual {
        let moves = |at: &usize| call.outer.iter().any(|axis| axis.conditions[*at] != 0);
        let (moving, fixed): (Vec<usize>, Vec<usize>) = (0..call.values.len()).partition(moves);
        let least = |at: &usize| {
            let lowest = call.taps.iter().map(|tap| tap.conditions[*at]).min().unwrap_or(0);
            (call.lane.conditions[*at] == 0).then_some(lowest.wrapping_neg())
        };
        let least = moving.iter().map(least).collect();
        Usual { fixed, moving, least }
    }

    fn is(&self, values: &[i64]) -> bool {
        let holds = |(at, least): (&usize, &Option<i64>)| least.is_some_and(|least| values[*at] >= least);
        self.moving.iter().zip(&self.least).all(holds)
    }
}

impl Call<'_> {
    /// Appends the masks of the current row under the `moving` conditions and the fixed ones: for each vector of the
    /// row, one mask for each tap. A lane's bit is set if its element is in the row and satisfies the conditions. If
    /// `a` has stride 2, masks have two bits for each lane ([`spread`]).
    ///
    /// For example, with 4 lanes, a tap that satisfies the conditions for the elements 1 to 5 of a row of 6 has the
    /// masks `0b1110` and `0b0011`, or `0b1010100` and `0b0000101` if `a` has stride 2.
    fn push_masks(&self, lanes: usize, moving: &[usize], masks: &mut Vec<u32>) {
        let begin = masks.len();
        let vectors = (self.lane.extent as usize).div_ceil(lanes);
        masks.resize(begin + vectors * self.taps.len(), 0);
        for (number, tap) in self.taps.iter().enumerate() {
            let (first, end) = tap.within(moving, &self.values, &self.lane, tap.always);
            if end <= first {
                continue;
            }
            for vector in 0..vectors {
                let start = (vector * lanes) as i64;
                // The lanes from `first` (inclusive) to `end` (exclusive).
                let [first, end] = [first, end].map(|at| at.saturating_sub(start).clamp(0, lanes as i64) as u32);
                let mask = (1u32 << end).wrapping_sub(1u32 << first.min(end));
                masks[begin + vector * self.taps.len() + number] = if self.lane.a == 1 { mask } else { spread(mask) };
            }
        }
    }

    /// Moves to the next row. Returns `false` after the last one.
    fn next_row(&mut self, index: &mut [i64]) -> bool {
        for (axis, index) in self.outer.iter().zip(index).rev() {
            *index += 1;
            let by = if *index < axis.extent { 1 } else { 1 - std::mem::take(index) };
            self.head.a = self.head.a.wrapping_offset(by.wrapping_mul(axis.a) as isize);
            self.head.b = self.head.b.wrapping_offset(by.wrapping_mul(axis.b) as isize);
            self.head.c = self.head.c.wrapping_offset(by.wrapping_mul(axis.c) as isize);
            for (value, step) in self.values.iter_mut().zip(axis.conditions) {
                *value = value.wrapping_add(by.wrapping_mul(*step));
            }
            if by == 1 {
                return true;
            }
        }
        false
    }

    /// Computes and stores the sums of the pending vectors, which are the first `waiting` of `parts`, and sets
    /// `waiting` to 0. Does nothing if none are pending.
    ///
    /// # Safety
    /// As [`Call::sum`].
    #[inline(always)]
    unsafe fn sum_waiting<V: Vector>(&self, parts: &mut [Part; BLOCK], waiting: &mut usize, masks: &[u32]) {
        if *waiting > 0 {
            // Fill the unused entries with the first one. Its sums are then computed several times, which is harmless:
            // all vectors of `c` are loaded before any is stored.
            let first = parts[0];
            parts[*waiting..].fill(first);
            // SAFETY: the caller's promise.
            unsafe { self.sum::<V>(parts, masks) };
            *waiting = 0;
        }
    }

    /// Computes and stores these vectors of sums.
    ///
    /// # Safety
    /// The host has the instructions of `V`; addresses are as required by [`window_f32`].
    #[inline(always)]
    unsafe fn sum<V: Vector>(&self, parts: &[Part; BLOCK], masks: &[u32]) {
        // SAFETY: the caller's promise.
        unsafe {
            match (self.lane.a, self.lane.b) {
                (1, 0) => self.sum_of::<V, 1, 0>(parts, masks),
                (1, _) => self.sum_of::<V, 1, 1>(parts, masks),
                (_, 0) => self.sum_of::<V, 2, 0>(parts, masks),
                (_, _) => self.sum_of::<V, 2, 1>(parts, masks),
            }
        }
    }

    /// As [`Call::sum`], where `A` and `B` are the strides between neighbouring lanes of `a` and `b` in elements.
    ///
    /// # Safety
    /// As [`Call::sum`].
    #[inline(always)]
    unsafe fn sum_of<V: Vector, const A: usize, const B: usize>(&self, parts: &[Part; BLOCK], masks: &[u32]) {
        // SAFETY: the caller's promise: the elements of `a` in the masks, and the elements of `b` and `c` in the row,
        // may be accessed.
        unsafe {
            let mut sums = [V::splat(0.0); BLOCK];
            let mut masks_of = [&masks[..0]; BLOCK];
            for at in 0..BLOCK {
                masks_of[at] = &masks[parts[at].masks..][..self.taps.len()];
                if self.head.accumulate != 0 {
                    sums[at] = V::load_part(parts[at].c, (1u32 << parts[at].count) - 1);
                }
            }
            for (number, tap) in self.taps.iter().enumerate() {
                for at in 0..BLOCK {
                    let (a, b) =
                        (parts[at].a.wrapping_offset(tap.a as isize), parts[at].b.wrapping_offset(tap.b as isize));
                    // Masked-out taps contribute 0 · weight, so that infinite and NaN weights propagate as in the
                    // unoptimized program.
                    let element = match A {
                        1 => V::load_part(a, masks_of[at][number]),
                        _ => V::load_every_other(a, masks_of[at][number]),
                    };
                    let factor = match B {
                        0 => V::splat(*b),
                        _ => V::load_part(b, (1u32 << parts[at].count) - 1),
                    };
                    sums[at] = sums[at].add_product(element, factor);
                }
            }
            for at in 0..BLOCK {
                sums[at].store_part(parts[at].c, (1u32 << parts[at].count) - 1);
            }
        }
    }
}
