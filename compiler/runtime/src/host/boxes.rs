//! Non-maximum suppression (NMS) of boxes, as in TVM's `python/tvm/topi/vision/nms.py`.

use super::{Arguments, said};
use crate::value::Output;
use rx_base::DType;
use rx_tensor::{Scalar, Tensor};
use std::cmp::Ordering;

/// The elements of a tensor of shape `(batch, rows, width)`, as floats, row-major. A row is a box or the scores of a
/// class.
struct Rows {
    values: Vec<f64>,
    batch: usize,
    rows: usize,
    width: usize,
}

impl Rows {
    fn of(tensor: &Tensor) -> Result<Rows, String> {
        let [batch, rows, width] = *tensor.shape() else {
            return Err("a tensor of three dimensions is needed".to_owned());
        };
        let values = floats(tensor);
        Ok(Rows { values, batch: batch as usize, rows: rows as usize, width: width as usize })
    }

    fn row(&self, batch: usize, row: usize) -> &[f64] {
        let start = (batch * self.rows + row) * self.width;
        self.values.get(start..start + self.width).unwrap_or_default()
    }
}

fn floats(tensor: &Tensor) -> Vec<f64> {
    (0..tensor.len()).map(|at| tensor.get(at).map_or(0.0, Scalar::as_float)).collect()
}

fn tensor_of(dtype: DType, shape: &[usize], values: impl IntoIterator<Item = f64>) -> Result<Output, String> {
    let shape: Vec<i64> = shape.iter().map(|extent| *extent as i64).collect();
    let mut tensor = Tensor::zeros(dtype, &shape).map_err(said)?;
    for (at, value) in values.into_iter().enumerate() {
        tensor.set(at, if dtype.is_int() { Scalar::Int(value as i64) } else { Scalar::Float(value) });
    }
    Ok(Output::Tensor(tensor))
}

/// Returns the intersection over union (IoU) of two boxes, each given by two opposite corners `(x0, y0, x1, y1)` in any
/// order. Returns 0 if the union is empty. Each step is rounded to the boxes' dtype, as in TVM's kernels. So an IoU that
/// equals the threshold in that dtype suppresses a box.
fn overlap(a: &[f64], b: &[f64], dtype: DType) -> f64 {
    let round = |value| rx_tensor::round(value, dtype);
    let area = |width: f64, height: f64| round(round(width) * round(height));
    let (&[a0, a1, a2, a3], &[b0, b1, b2, b3]) = (a, b) else { return 0.0 };
    let ((al, ar), (at, ab)) = ((a0.min(a2), a0.max(a2)), (a1.min(a3), a1.max(a3)));
    let ((bl, br), (bt, bb)) = ((b0.min(b2), b0.max(b2)), (b1.min(b3), b1.max(b3)));
    let shared = area((ar.min(br) - al.max(bl)).max(0.0), (ab.min(bb) - at.max(bt)).max(0.0));
    let union = round(round(area(ar - al, ab - at) + area(br - bl, bb - bt)) - shared);
    if union <= 0.0 { 0.0 } else { round(shared / union) }
}

/// Compares scores in descending order. Used with stable sorts, so equal scores keep their order.
fn by_score(a: f64, b: f64) -> Ordering {
    b.partial_cmp(&a).unwrap_or(Ordering::Equal)
}

/// Returns the integer argument `at`: the first of `count` columns, which must all be within a row of `width` elements.
fn column(arguments: &Arguments, at: usize, width: usize, count: usize) -> Result<usize, String> {
    let column = arguments.int(at).and_then(|column| usize::try_from(column).ok());
    column.filter(|column| column + count <= width).ok_or_else(|| format!("argument {at} is outside of a row"))
}

/// Returns the column of the class id, or `None` if the argument is negative or omitted.
fn class_column(arguments: &Arguments, at: usize, width: usize) -> Result<Option<usize>, String> {
    match arguments.int(at) {
        Some(column) if column >= 0 => column_of(column, width).map(Some),
        _ => Ok(None),
    }
}

fn column_of(column: i64, width: usize) -> Result<usize, String> {
    let column = usize::try_from(column).ok().filter(|column| *column < width);
    column.ok_or_else(|| "the class is outside of a row".to_owned())
}

/// Computes `vision.get_valid_counts(data, score_threshold, id_index, score_index)`. A box is valid if its score is
/// above the threshold, rounded to the boxes' dtype, and its class id, if there is one, is not negative. Returns the
/// number of valid boxes per batch, the valid boxes moved to the start of the batch, and their original row indices; the
/// last two are padded with −1.
pub(super) fn get_valid_counts(arguments: &Arguments) -> Result<Output, String> {
    let data = arguments.tensor(0)?;
    let rows = Rows::of(data)?;
    let threshold = rx_tensor::round(arguments.float(1).unwrap_or_default(), data.dtype());
    let class = class_column(arguments, 2, rows.width)?;
    let score = column(arguments, 3, rows.width, 1)?;
    let mut counts = Vec::with_capacity(rows.batch);
    let mut boxes = vec![-1.0; rows.values.len()];
    let mut places = vec![-1.0; rows.batch * rows.rows];
    for batch in 0..rows.batch {
        let mut count = 0;
        for at in 0..rows.rows {
            let row = rows.row(batch, at);
            // INVARIANT: `column` and `class_column` checked that both columns are within a row.
            if row[score] > threshold && class.is_none_or(|class| row[class] >= 0.0) {
                let to = batch * rows.rows + count;
                boxes[to * rows.width..(to + 1) * rows.width].copy_from_slice(row);
                places[to] = at as f64;
                count += 1;
            }
        }
        counts.push(count as f64);
    }
    Ok(Output::Tuple(vec![
        tensor_of(DType::INT32, &[rows.batch], counts)?,
        tensor_of(data.dtype(), &[rows.batch, rows.rows, rows.width], boxes)?,
        tensor_of(DType::INT32, &[rows.batch, rows.rows], places)?,
    ]))
}

/// The dtype of the boxes, and some attributes of `vision.non_max_suppression`.
struct Suppression {
    /// The dtype of the boxes. The thresholds are rounded to it.
    dtype: DType,
    /// The maximum number of selected boxes per batch; there is no limit if it is not positive.
    max_output: i64,
    iou: f64,
    /// Whether boxes of different classes suppress each other.
    force: bool,
    coordinates: usize,
    score: usize,
    class: Option<usize>,
    /// The parameter of soft NMS, which multiplies scores by `exp(-0.5 * IoU² / sigma)`. 0 or less selects greedy NMS.
    sigma: f64,
    threshold: f64,
}

/// A box that takes part in the suppression: its row, and its row index in the batch (`None` once it is rejected).
#[derive(Clone)]
struct Candidate {
    row: Vec<f64>,
    place: Option<usize>,
}

impl Suppression {
    fn of(arguments: &Arguments, width: usize, dtype: DType) -> Result<Suppression, String> {
        let sigma = arguments.float(12).unwrap_or_default();
        let threshold = if sigma > 0.0 { arguments.float(13).unwrap_or_default() } else { 0.0 };
        Ok(Suppression {
            dtype,
            max_output: arguments.int(3).unwrap_or(-1),
            iou: rx_tensor::round(arguments.float(4).unwrap_or(0.5), dtype),
            force: arguments.flag(5),
            coordinates: column(arguments, 7, width, 4)?,
            score: column(arguments, 8, width, 1)?,
            class: class_column(arguments, 9, width)?,
            sigma,
            threshold: rx_tensor::round(threshold, dtype),
        })
    }

    fn score(&self, candidate: &Candidate) -> f64 {
        candidate.row.get(self.score).copied().unwrap_or(-1.0)
    }

    /// Whether `kept` boxes are as many as may be selected.
    fn is_full(&self, kept: usize) -> bool {
        self.max_output > 0 && kept as i64 >= self.max_output
    }

    /// Returns the IoU of two boxes, or `None` if they cannot suppress each other because their classes differ.
    fn met(&self, kept: &Candidate, other: &Candidate) -> Option<f64> {
        let same = self.class.is_none_or(|class| kept.row.get(class) == other.row.get(class));
        let corners = |of: &Candidate| of.row.get(self.coordinates..self.coordinates + 4).unwrap_or_default().to_vec();
        (self.force || same).then(|| overlap(&corners(kept), &corners(other), self.dtype))
    }

    /// Runs greedy NMS on candidates in descending order of score. A box that is suppressed, whose score is at most the
    /// threshold (0), or that comes after `max_output` selected boxes loses its `place` and is filled with −1.
    fn greedy(&self, candidates: &mut [Candidate]) {
        let mut kept = 0;
        for at in 0..candidates.len() {
            let (before, rest) = candidates.split_at_mut(at + 1);
            let Some(this) = before.last_mut() else { continue };
            if self.score(this) <= self.threshold || self.is_full(kept) {
                this.row.fill(-1.0);
                this.place = None;
                continue;
            }
            kept += 1;
            for other in rest.iter_mut().filter(|other| self.score(other) > self.threshold) {
                if self.met(this, other).is_some_and(|overlap| overlap >= self.iou) {
                    // INVARIANT: `column` checked that the score's column is within a row.
                    other.row[self.score] = -1.0;
                    other.place = None;
                }
            }
        }
    }

    /// Runs soft NMS: repeatedly selects the best remaining candidate above the threshold, suppresses the others whose
    /// IoU with it is at least `iou`, and reduces the scores of those that overlap it less. These are suppressed, too,
    /// if their scores fall to the threshold or below. Boxes of other classes do not change, unless
    /// [`Suppression::force`]. Moves the selected boxes to the front and returns their number.
    fn soft(&self, candidates: &mut [Candidate]) -> usize {
        let mut kept = 0;
        while kept < candidates.len() && !self.is_full(kept) {
            let mut best: Option<(usize, f64)> = None;
            for (at, candidate) in candidates.iter().enumerate().skip(kept) {
                let score = self.score(candidate);
                if candidate.place.is_some() && score > best.map_or(self.threshold, |(_, best)| best) {
                    best = Some((at, score));
                }
            }
            let Some((best, _)) = best else { break };
            candidates.swap(kept, best);
            let (before, rest) = candidates.split_at_mut(kept + 1);
            let Some(this) = before.last() else { break };
            for other in rest.iter_mut().filter(|other| other.place.is_some()) {
                let score = self.score(other);
                if score <= self.threshold {
                    continue;
                }
                let Some(overlap) = self.met(this, other) else { continue };
                let left = score * (-0.5 / self.sigma * overlap * overlap).exp();
                let left = rx_tensor::round(left, self.dtype);
                if overlap < self.iou {
                    // INVARIANT: `column` checked that the score's column is within a row.
                    other.row[self.score] = left;
                }
                if overlap >= self.iou || left <= self.threshold {
                    other.place = None;
                }
            }
            kept += 1;
        }
        kept
    }
}

/// Computes `vision.non_max_suppression(data, valid_count, indices, …)`. Returns the indices and counts of the selected
/// boxes, preceded by the boxes in soft NMS; or only the boxes if `return_indices` is false.
pub(super) fn non_max_suppression(arguments: &Arguments) -> Result<Output, String> {
    let data = arguments.tensor(0)?;
    let rows = Rows::of(data)?;
    let (valid, indices) = (super::integers(arguments.tensor(1)?)?, super::integers(arguments.tensor(2)?)?);
    if valid.len() != rows.batch || indices.len() != rows.batch * rows.rows {
        return Err("`valid_count` or `indices` does not fit the boxes".to_owned());
    }
    let suppression = Suppression::of(arguments, rows.width, data.dtype())?;
    let (top, return_indices, to_front) = (arguments.int(6).unwrap_or(-1), arguments.flag(10), arguments.flag(11));
    let soft = suppression.sigma > 0.0;
    let mut boxes = vec![-1.0; rows.values.len()];
    let mut places = vec![-1.0; rows.batch * rows.rows];
    let mut counts = vec![0.0; rows.batch];
    for (batch, count) in counts.iter_mut().enumerate() {
        // INVARIANT: `valid` has one element per batch, checked above.
        let mut considered = usize::try_from(valid[batch]).unwrap_or(0).min(rows.rows);
        if top > 0 {
            considered = considered.min(top as usize);
        }
        let candidate = |at| Candidate { row: rows.row(batch, at).to_vec(), place: Some(at) };
        let mut candidates: Vec<Candidate> = (0..considered).map(candidate).collect();
        candidates.sort_by(|a, b| by_score(suppression.score(a), suppression.score(b)));
        if soft {
            let kept = suppression.soft(&mut candidates);
            candidates.truncate(kept);
        } else {
            suppression.greedy(&mut candidates);
        }
        if !return_indices && to_front {
            candidates.retain(|candidate| suppression.score(candidate) >= 0.0);
        }
        let first = batch * rows.rows;
        for (at, candidate) in candidates.iter().enumerate() {
            let start = (first + at) * rows.width;
            boxes[start..start + rows.width].copy_from_slice(&candidate.row);
        }
        let kept = candidates.iter().filter_map(|candidate| candidate.place);
        for (to, place) in places.iter_mut().skip(first).zip(kept) {
            *to = indices[first + place] as f64;
            *count += 1.0;
        }
    }
    let boxes = || tensor_of(data.dtype(), &[rows.batch, rows.rows, rows.width], boxes.iter().copied());
    if !return_indices {
        return boxes();
    }
    let places = tensor_of(DType::INT32, &[rows.batch, rows.rows], places)?;
    let counts = tensor_of(DType::INT32, &[rows.batch, 1], counts)?;
    Ok(Output::Tuple(if soft { vec![boxes()?, places, counts] } else { vec![places, counts] }))
}

/// A selected box: its class, its index and its score.
type Kept = (usize, usize, f64);

/// Computes `vision.all_class_non_max_suppression(boxes, scores, max_output_boxes_per_class, iou_threshold,
/// score_threshold, output_format)`: greedy NMS for each class separately. Outputs are padded with 0 after the selected
/// boxes.
pub(super) fn all_class_non_max_suppression(arguments: &Arguments) -> Result<Output, String> {
    let dtype = arguments.tensor(0)?.dtype();
    let (boxes, scores) = (Rows::of(arguments.tensor(0)?)?, Rows::of(arguments.tensor(1)?)?);
    let (batches, classes, count) = (scores.batch, scores.rows, scores.width);
    if boxes.batch != batches || boxes.rows != count || boxes.width != 4 {
        return Err("the boxes do not fit the scores".to_owned());
    }
    let most = arguments.int(2).and_then(|most| usize::try_from(most).ok()).unwrap_or(0);
    let iou = rx_tensor::round(arguments.float(3).unwrap_or_default(), dtype);
    let threshold = rx_tensor::round(arguments.float(4).unwrap_or_default(), arguments.tensor(1)?.dtype());
    // The selected boxes of each batch.
    let mut kept: Vec<Vec<Kept>> = vec![Vec::new(); batches];
    for (batch, kept) in kept.iter_mut().enumerate() {
        for class in 0..classes {
            let row = scores.row(batch, class);
            let mut order: Vec<usize> = (0..count).filter(|at| row[*at] > threshold).collect();
            order.sort_by(|a, b| by_score(row[*a], row[*b]));
            let mut of_class: Vec<usize> = Vec::new();
            for at in order {
                let free = |other: &usize| overlap(boxes.row(batch, *other), boxes.row(batch, at), dtype) < iou;
                if of_class.len() < most && of_class.iter().all(free) {
                    of_class.push(at);
                }
            }
            kept.extend(of_class.into_iter().map(|at| (class, at, row[at])));
        }
    }
    let total = classes * count;
    if arguments.text(5) != "tensorflow" {
        let rows = kept.iter().enumerate().flat_map(|(batch, kept)| {
            kept.iter().flat_map(move |(class, at, _)| [batch, *class, *at].map(|value| value as f64))
        });
        let indices = tensor_of(DType::INT64, &[batches * total, 3], rows)?;
        let number = kept.iter().map(Vec::len).sum::<usize>() as f64;
        return Ok(Output::Tuple(vec![indices, tensor_of(DType::INT64, &[1], [number])?]));
    }
    let padded = |width: usize, of: &dyn Fn(&Kept) -> Vec<f64>| {
        let of_batch = |kept: &Vec<Kept>| {
            let mut values: Vec<f64> = kept.iter().flat_map(of).collect();
            values.resize(total * width, 0.0);
            values
        };
        kept.iter().flat_map(of_batch).collect::<Vec<f64>>()
    };
    let indices = padded(2, &|(class, at, _)| vec![*class as f64, *at as f64]);
    let numbers = kept.iter().map(|kept| kept.len() as f64);
    Ok(Output::Tuple(vec![
        tensor_of(DType::INT64, &[batches, total, 2], indices)?,
        tensor_of(DType::FLOAT32, &[batches, total], padded(1, &|(_, _, score)| vec![*score]))?,
        tensor_of(DType::INT64, &[batches], numbers)?,
    ]))
}
