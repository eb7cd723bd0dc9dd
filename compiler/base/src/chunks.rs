//! A list that shares its unchanged parts with its earlier versions.
//!
//! The items that differ between two versions are found without reading the shared parts ([`Chunks::changed`]);
//! `imbl::Vector` compares whole vectors only.

use std::fmt;
use std::iter::FlatMap;
use std::ops::{Index, IndexMut, Range};
use std::slice;
use std::sync::Arc;

/// The usual number of items in a chunk. A chunk has fewer than twice as many.
const CHUNK: usize = 128;

/// A persistent list. Its items are in shared chunks, so a copy with a few items replaced costs a time proportional to
/// the number of chunks, not of items.
#[derive(Clone)]
pub struct Chunks<T> {
    /// INVARIANT: no chunk is empty, and their `end`s are the sums of their lengths.
    chunks: Arc<[Chunk<T>]>,
}

#[derive(Clone)]
struct Chunk<T> {
    /// The index after its last item.
    end: usize,
    items: Arc<[T]>,
}

impl<T> Chunk<T> {
    /// The index of its first item.
    fn start(&self) -> usize {
        self.end - self.items.len()
    }
}

/// Cuts items into chunks, the first of which starts at index `start`.
fn cut<T>(items: Vec<T>, start: usize) -> impl Iterator<Item = Chunk<T>> {
    let size = items.len().div_ceil((items.len() / CHUNK).max(1));
    let (mut items, mut end) = (items.into_iter(), start);
    std::iter::from_fn(move || {
        let items: Arc<[T]> = items.by_ref().take(size).collect();
        end += items.len();
        (!items.is_empty()).then_some(Chunk { end, items })
    })
}

impl<T> Chunks<T> {
    /// The number of items.
    pub fn len(&self) -> usize {
        self.chunks.last().map_or(0, |chunk| chunk.end)
    }

    /// Whether there are no items.
    pub fn is_empty(&self) -> bool {
        self.chunks.is_empty()
    }

    /// Returns the item at an index.
    pub fn get(&self, index: usize) -> Option<&T> {
        self.rest_of_chunk(index)?.first()
    }

    /// Returns the first item.
    pub fn first(&self) -> Option<&T> {
        self.chunks.first()?.items.first()
    }

    /// Returns the last item.
    pub fn last(&self) -> Option<&T> {
        self.chunks.last()?.items.last()
    }

    /// Returns the items, in order.
    pub fn iter(&self) -> Iter<'_, T> {
        self.into_iter()
    }

    /// Returns an address that only clones of this list have as long as it exists, except for empty lists.
    pub fn address(&self) -> usize {
        self.chunks.as_ptr() as usize
    }

    /// The number of the chunk that contains an item.
    fn chunk_of(&self, index: usize) -> usize {
        self.chunks.partition_point(|chunk| chunk.end <= index)
    }

    /// Returns the items from `index` to the end of their chunk.
    fn rest_of_chunk(&self, index: usize) -> Option<&[T]> {
        let chunk = self.chunks.get(self.chunk_of(index))?;
        chunk.items.get(index - chunk.start()..)
    }

    /// Returns the items before index `end` that are in the same chunk as the last of them.
    fn chunk_before(&self, end: usize) -> Option<&[T]> {
        let chunk = self.chunks.get(self.chunk_of(end.checked_sub(1)?))?;
        chunk.items.get(..end - chunk.start())
    }

    /// Returns the number of items at the start that are the same in both lists. Shared chunks are not read.
    fn common_prefix(&self, other: &Chunks<T>, same: impl Fn(&T, &T) -> bool) -> usize {
        let mut count = 0;
        while let Some((own, others)) = self.rest_of_chunk(count).zip(other.rest_of_chunk(count)) {
            let most = own.len().min(others.len());
            let equal = match std::ptr::eq(own, others) {
                true => most,
                false => own.iter().zip(others).take_while(|(a, b)| same(a, b)).count(),
            };
            count += equal;
            if equal < most {
                break;
            }
        }
        count
    }

    /// Returns the number of items at the end, at most `limit`, that are the same in both lists. Shared chunks are not
    /// read.
    fn common_suffix(&self, other: &Chunks<T>, limit: usize, same: impl Fn(&T, &T) -> bool) -> usize {
        let (mut end, mut end_of_other) = (self.len(), other.len());
        let mut count = 0;
        while let Some((own, others)) = self.chunk_before(end).zip(other.chunk_before(end_of_other)) {
            let most = own.len().min(others.len()).min(limit - count);
            let equal = match std::ptr::eq(own, others) {
                true => most,
                false => own.iter().rev().zip(others.iter().rev()).take(most).take_while(|(a, b)| same(a, b)).count(),
            };
            (count, end, end_of_other) = (count + equal, end - equal, end_of_other - equal);
            if equal < most || count == limit {
                break;
            }
        }
        count
    }
}

impl<T: Clone> Chunks<T> {
    /// Returns the list with the items in `range` replaced by `items`.
    #[must_use]
    pub fn splice(&self, range: Range<usize>, items: impl IntoIterator<Item = T>) -> Chunks<T> {
        self.joined(range.start, items, self, range.end)
    }

    /// Returns the first `count` items of this list, then `items`, then the items of `rest` from index `first` on.
    #[must_use]
    pub fn joined(
        &self,
        count: usize,
        items: impl IntoIterator<Item = T>,
        rest: &Chunks<T>,
        first: usize,
    ) -> Chunks<T> {
        let mut kept = self.chunk_of(count);
        let mut after = rest.chunks.partition_point(|chunk| chunk.start() < first);
        let mut middle: Vec<T> = Vec::new();
        if let Some(chunk) = self.chunks.get(kept) {
            middle.extend(chunk.items.iter().take(count - chunk.start()).cloned());
        }
        middle.extend(items);
        if let Some(chunk) = after.checked_sub(1).and_then(|last| rest.chunks.get(last)) {
            middle.extend(chunk.items.iter().skip(first - chunk.start()).cloned());
        }
        // Merge a small chunk with a neighbour, so that the number of chunks stays proportional to that of items.
        if !middle.is_empty() && middle.len() < CHUNK / 2 {
            if let Some(next) = rest.chunks.get(after) {
                middle.extend(next.items.iter().cloned());
                after += 1;
            } else if let Some(last) = kept.checked_sub(1) {
                middle.splice(0..0, self.chunks[last].items.iter().cloned());
                kept = last;
            }
        }
        let mut chunks = self.chunks[..kept].to_vec();
        let start = chunks.last().map_or(0, |chunk| chunk.end);
        chunks.extend(cut(middle, start));
        let mut end = chunks.last().map_or(0, |chunk| chunk.end);
        chunks.extend(rest.chunks[after..].iter().map(|chunk| {
            end += chunk.items.len();
            Chunk { end, items: chunk.items.clone() }
        }));
        Chunks { chunks: chunks.into() }
    }
}

impl<T> Chunks<Arc<T>> {
    /// Whether both lists have the same items, compared by pointer.
    pub fn is_same(&self, other: &Chunks<Arc<T>>) -> bool {
        self.len() == other.len() && self.common_prefix(other, Arc::ptr_eq) == self.len()
    }

    /// Returns the range of this list, and that of `new`, between the items at the start and at the end that are the
    /// same in both lists, compared by pointer.
    pub fn changed(&self, new: &Chunks<Arc<T>>) -> (Range<usize>, Range<usize>) {
        let start = self.common_prefix(new, Arc::ptr_eq);
        let suffix = self.common_suffix(new, self.len().min(new.len()) - start, Arc::ptr_eq);
        (start..self.len() - suffix, start..new.len() - suffix)
    }
}

impl<T> Default for Chunks<T> {
    fn default() -> Chunks<T> {
        Chunks { chunks: Arc::default() }
    }
}

impl<T> FromIterator<T> for Chunks<T> {
    fn from_iter<I: IntoIterator<Item = T>>(items: I) -> Chunks<T> {
        Chunks { chunks: cut(items.into_iter().collect(), 0).collect() }
    }
}

impl<T: fmt::Debug> fmt::Debug for Chunks<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self).finish()
    }
}

/// Items of a chunk that both lists share count as equal.
impl<T: PartialEq> PartialEq for Chunks<T> {
    fn eq(&self, other: &Chunks<T>) -> bool {
        self.len() == other.len() && self.common_prefix(other, |a, b| a == b) == self.len()
    }
}

impl<T: Eq> Eq for Chunks<T> {}

impl<T> Index<usize> for Chunks<T> {
    type Output = T;

    fn index(&self, index: usize) -> &T {
        let chunk = &self.chunks[self.chunk_of(index)];
        &chunk.items[index - chunk.start()]
    }
}

/// Copies the chunk of the item first if another list shares it.
impl<T: Clone> IndexMut<usize> for Chunks<T> {
    fn index_mut(&mut self, index: usize) -> &mut T {
        let at = self.chunk_of(index);
        let chunk = &mut Arc::make_mut(&mut self.chunks)[at];
        let offset = index - chunk.start();
        &mut Arc::make_mut(&mut chunk.items)[offset]
    }
}

type ItemsOf<'a, T> = fn(&'a Chunk<T>) -> slice::Iter<'a, T>;

/// An iterator over the items of a [`Chunks`].
#[derive(Clone)]
pub struct Iter<'a, T> {
    items: FlatMap<slice::Iter<'a, Chunk<T>>, slice::Iter<'a, T>, ItemsOf<'a, T>>,
    /// The number of items that remain.
    left: usize,
}

impl<'a, T> IntoIterator for &'a Chunks<T> {
    type Item = &'a T;
    type IntoIter = Iter<'a, T>;

    fn into_iter(self) -> Iter<'a, T> {
        let items: ItemsOf<'a, T> = |chunk| chunk.items.iter();
        Iter { items: self.chunks.iter().flat_map(items), left: self.len() }
    }
}

impl<'a, T> Iterator for Iter<'a, T> {
    type Item = &'a T;

    fn next(&mut self) -> Option<&'a T> {
        self.left = self.left.saturating_sub(1);
        self.items.next()
    }

    fn nth(&mut self, n: usize) -> Option<&'a T> {
        self.left = self.left.saturating_sub(n.saturating_add(1));
        self.items.nth(n)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, Some(self.left))
    }

    fn fold<B, F: FnMut(B, &'a T) -> B>(self, init: B, f: F) -> B {
        self.items.fold(init, f)
    }
}

impl<'a, T> DoubleEndedIterator for Iter<'a, T> {
    fn next_back(&mut self) -> Option<&'a T> {
        self.left = self.left.saturating_sub(1);
        self.items.next_back()
    }

    fn nth_back(&mut self, n: usize) -> Option<&'a T> {
        self.left = self.left.saturating_sub(n.saturating_add(1));
        self.items.nth_back(n)
    }
}

impl<T> ExactSizeIterator for Iter<'_, T> {}

#[cfg(test)]
mod tests;
