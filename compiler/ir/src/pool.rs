//! A pool of reusable storages: the allocator of static memory plans.

/// Storages, numbered in the order of their creation, and the set of free ones.
///
/// A memory plan walks over a program, takes a storage where a tensor is created, and frees it after the tensor's last
/// use. The caller decides which free storage suits a tensor, because TVM's passes and the executor have different
/// rules.
#[derive(Debug)]
pub struct Pool<S> {
    storages: Vec<S>,
    /// The free storages, each with the number of storages freed before it.
    free: Vec<(usize, usize)>,
    freed: usize,
}

impl<S> Default for Pool<S> {
    fn default() -> Pool<S> {
        Pool { storages: Vec::new(), free: Vec::new(), freed: 0 }
    }
}

impl<S> Pool<S> {
    /// Takes the free storage with the least rank, or none if `rank` rejects all. `rank` gets the number of storages
    /// that were freed before this one (so it can prefer the least or most recently freed), and the storage.
    pub fn take<K: Ord>(&mut self, mut rank: impl FnMut(usize, &S) -> Option<K>) -> Option<usize> {
        let ranks = self.free.iter().enumerate();
        let ranks = ranks.filter_map(|(at, (freed, one))| Some((rank(*freed, &self.storages[*one])?, at)));
        let (_, at) = ranks.min()?;
        Some(self.free.swap_remove(at).1)
    }

    /// Adds a storage, which is not free; returns its number.
    pub fn add(&mut self, storage: S) -> usize {
        self.storages.push(storage);
        self.storages.len() - 1
    }

    /// Frees a storage.
    pub fn free(&mut self, storage: usize) {
        self.free.push((self.freed, storage));
        self.freed += 1;
    }

    /// Keeps only the free storages for which `is_kept` holds. The others are never taken again.
    pub fn retain_free(&mut self, mut is_kept: impl FnMut(&S) -> bool) {
        self.free.retain(|(_, one)| is_kept(&self.storages[*one]));
    }

    /// Returns a storage by its number.
    pub fn get_mut(&mut self, storage: usize) -> &mut S {
        &mut self.storages[storage]
    }

    /// All storages, by number.
    pub fn into_storages(self) -> Vec<S> {
        self.storages
    }
}

#[cfg(test)]
mod tests {
    use super::Pool;

    #[test]
    fn pool_takes_the_least_rank() {
        let mut pool = Pool::default();
        let all: Vec<usize> = [8, 4, 4, 2].into_iter().map(|size| pool.add(size)).collect();
        assert_eq!(pool.take(|_, size| Some(*size)), None);
        all.iter().for_each(|one| pool.free(*one));
        let fits = |freed: usize, size: &i32| (*size >= 3).then_some((*size, freed));
        assert_eq!(
            [pool.take(fits), pool.take(fits), pool.take(fits), pool.take(fits)],
            [Some(1), Some(2), Some(0), None]
        );
        pool.retain_free(|size| *size != 2);
        assert_eq!(pool.take(|_, size| Some(*size)), None);
    }
}
