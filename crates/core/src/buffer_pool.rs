//! A pool of vectors whose memory is used again: for each new large vector, the system has to clear pages.

use std::mem::take;
use std::sync::{Mutex, TryLockError};

/// The most bytes of all vectors that wait, by default.
const MAX_BYTES: usize = 48 << 20;

/// Empty vectors that have room.
#[derive(Debug)]
pub struct BufferPool<T> {
    waiting: Mutex<Vec<Vec<T>>>,
    max_bytes: usize,
}

impl<T> Default for BufferPool<T> {
    fn default() -> Self {
        Self::new(MAX_BYTES)
    }
}

impl<T> BufferPool<T> {
    /// A pool of vectors with at most `max_bytes` bytes in all.
    pub fn new(max_bytes: usize) -> Self {
        Self {
            waiting: Mutex::default(),
            max_bytes,
        }
    }

    /// Frees the vectors that have no room for `room` values. Returns whether there was one.
    pub fn free_smaller(&self, room: usize) -> bool {
        let free = |waiting: &mut Vec<Vec<T>>| {
            let before = waiting.len();
            waiting.retain(|values| values.capacity() >= room);
            waiting.len() < before
        };
        self.with(free).unwrap_or(false)
    }

    /// An empty vector: the smallest that has room for `room` values. If none has, one without room.
    pub fn take(&self, room: usize) -> Vec<T> {
        self.take_within(room, usize::MAX)
    }

    /// As [`BufferPool::take`], for a result that may keep its room: with at most five times the room. A vector with room
    /// for an eighth more, which has grown twice, has four and a half times.
    pub fn take_for_result(&self, room: usize) -> Vec<T> {
        self.take_within(room, room.saturating_mul(5))
    }

    fn take_within(&self, room: usize, most: usize) -> Vec<T> {
        let find = |waiting: &mut Vec<Vec<T>>| {
            let fitting = (0..).zip(&*waiting);
            let fitting = fitting.filter(|(_, values)| (room..=most).contains(&values.capacity()));
            let (index, _) = fitting.min_by_key(|(_, values)| values.capacity())?;
            Some(waiting.swap_remove(index))
        };
        self.with(find).flatten().unwrap_or_default()
    }

    /// Keeps the room of a vector; its values are dropped. If the vectors have too many bytes, the smallest are freed.
    pub fn put(&self, mut values: Vec<T>) {
        values.clear();
        let bytes = |values: &Vec<T>| values.capacity() * size_of::<T>();
        if !(1..=self.max_bytes).contains(&bytes(&values)) {
            return;
        }
        self.with(|waiting| {
            if waiting.try_reserve(1).is_ok() {
                waiting.push(take(&mut values));
            }
            while waiting.iter().map(bytes).sum::<usize>() > self.max_bytes {
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
    fn vectors_without_room_are_freed() {
        let pool = BufferPool::new(1000);
        pool.put(vec![1u8; 1001]); // more than the pool keeps
        assert_eq!(pool.take(0).capacity(), 0);
        pool.put(vec![1; 100]);
        pool.put(vec![1; 200]);
        assert_eq!(pool.take_for_result(19).capacity(), 0);
        assert_eq!(pool.take_for_result(150).capacity(), 200);
        pool.put(vec![1; 200]);
        assert!(pool.free_smaller(101) && !pool.free_smaller(101));
        assert_eq!([(); 2].map(|()| pool.take(0).capacity()), [200, 0]);
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
