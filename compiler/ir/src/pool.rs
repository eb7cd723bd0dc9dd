//! Storages that are taken, freed and taken again: the allocator of static memory plans.

/// Storages, numbered in the order in which they are made, and which of them are free.
///
/// A plan walks over a program, takes a storage where a tensor is made, and frees it after the last use of the tensor. Which free
/// storage suits a tensor is the caller's to say: TVM's passes and the programs that run have different rules.
#[derive(Debug)]
pub struct Pool<S> {
    storages: Vec<S>,
    /// In the order in which they were freed.
    free: Vec<usize>,
}

impl<S> Default for Pool<S> {
    fn default() -> Pool<S> {
        Pool { storages: Vec::new(), free: Vec::new() }
    }
}

impl<S> Pool<S> {
    /// A storage that was free: of those that `rank` does not decline, the one of the least rank, of several the one freed
    /// first. `rank` is given how many are free before a storage.
    pub fn take<K: Ord>(&mut self, mut rank: impl FnMut(usize, &S) -> Option<K>) -> Option<usize> {
        let ranked = self.free.iter().enumerate().filter_map(|(at, one)| Some((rank(at, &self.storages[*one])?, at)));
        let (_, at) = ranked.min()?;
        Some(self.free.remove(at))
    }

    /// A new storage, which is not free.
    pub fn add(&mut self, storage: S) -> usize {
        self.storages.push(storage);
        self.storages.len() - 1
    }

    /// Frees a storage.
    pub fn free(&mut self, storage: usize) {
        self.free.push(storage);
    }

    /// Keeps those of the free storages to which this applies; the others are never taken again.
    pub fn retain_free(&mut self, mut is_kept: impl FnMut(&S) -> bool) {
        self.free.retain(|one| is_kept(&self.storages[*one]));
    }

    /// A storage, by its number.
    pub fn get_mut(&mut self, storage: usize) -> &mut S {
        &mut self.storages[storage]
    }

    /// All storages.
    pub fn into_storages(self) -> Vec<S> {
        self.storages
    }
}

#[cfg(test)]
mod tests {
    use super::Pool;

    #[test]
    fn pool_takes_the_least_rank_then_the_first_freed() {
        let mut pool = Pool::default();
        let all: Vec<usize> = [8, 4, 4, 2].into_iter().map(|size| pool.add(size)).collect();
        assert_eq!(pool.take(|_, size| Some(*size)), None);
        all.iter().for_each(|one| pool.free(*one));
        let fits = |_: usize, size: &i32| (*size >= 3).then_some(*size);
        assert_eq!(
            [pool.take(fits), pool.take(fits), pool.take(fits), pool.take(fits)],
            [Some(1), Some(2), Some(0), None]
        );
        pool.retain_free(|size| *size != 2);
        assert_eq!(pool.take(|_, size| Some(*size)), None);
    }
}
