//! Vectors whose memory is used again. For each large vector, the system has to clear new pages.

use std::mem::take;
use std::sync::{Mutex, TryLockError};

/// The most bytes of all vectors that wait.
const MAX_BYTES: usize = 48 << 20;

/// Empty vectors that have room.
#[derive(Debug, Default)]
pub struct BufferPool<T> {
    waiting: Mutex<Vec<Vec<T>>>,
}

impl<T> BufferPool<T> {
    /// An empty vector: the smallest that has room for so many values. If none has, one without room.
    pub fn take(&self, room: usize) -> Vec<T> {
        let find = |waiting: &mut Vec<Vec<T>>| {
            let fitting = (0..).zip(&*waiting);
            let fitting = fitting.filter(|(_, values)| values.capacity() >= room);
            let (index, _) = fitting.min_by_key(|(_, values)| values.capacity())?;
            Some(waiting.swap_remove(index))
        };
        self.with(find).flatten().unwrap_or_default()
    }

    /// Keeps the room of a vector; its values are dropped. If the vectors have too many bytes, the smallest are freed.
    pub fn put(&self, mut values: Vec<T>) {
        values.clear();
        let bytes = |values: &Vec<T>| values.capacity() * size_of::<T>();
        if !(1..=MAX_BYTES).contains(&bytes(&values)) {
            return;
        }
        self.with(|waiting| {
            if waiting.try_reserve(1).is_ok() {
                waiting.push(take(&mut values));
            }
            while waiting.iter().map(bytes).sum::<usize>() > MAX_BYTES {
                let smallest = (0..waiting.len()).min_by_key(|&index| waiting[index].capacity());
                smallest.map(|index| waiting.swap_remove(index));
            }
        });
    }

    /// None if another thread is at it: in the child of a fork, that thread may not exist.
    fn with<R>(&self, change: impl FnOnce(&mut Vec<Vec<T>>) -> R) -> Option<R> {
        match self.waiting.try_lock() {
            Ok(mut waiting) => Some(change(&mut waiting)),
            Err(TryLockError::Poisoned(waiting)) => Some(change(&mut waiting.into_inner())),
            Err(TryLockError::WouldBlock) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn room_is_used_again_and_bounded() {
        let pool = BufferPool::default();
        assert_eq!(pool.take(1), [0u32; 0]);
        let mut values = vec![7; 1000];
        let start = values.as_ptr();
        pool.put(take(&mut values));
        pool.put(values); // without room
        pool.put(vec![8; 2000]);
        assert_eq!(pool.take(2001).capacity(), 0);
        let again = pool.take(1000);
        assert_eq!((again.as_ptr(), again.len()), (start, 0));
        assert!(pool.take(0).capacity() >= 2000 && pool.take(0).capacity() == 0);
        pool.put(Vec::with_capacity(MAX_BYTES / 4 + 1));
        assert_eq!(pool.take(0).capacity(), 0);
        for size in [1, 3, 2, 4, 2] {
            pool.put(Vec::with_capacity(size * MAX_BYTES / 32));
        }
        let mut kept = [(); 5].map(|()| pool.take(0).capacity() * 32 / MAX_BYTES);
        kept.sort_unstable();
        assert_eq!(kept, [0, 0, 0, 3, 4]);
    }

    #[test]
    fn a_lock_of_another_thread_is_not_waited_for() {
        let pool = BufferPool::default();
        pool.put(vec![1u8]);
        let held = pool.waiting.lock();
        assert_eq!(pool.take(0).capacity(), 0);
        pool.put(vec![2; 2]);
        drop(held);
        assert_eq!(pool.take(0).capacity(), 1);
    }
}
