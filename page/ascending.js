// Search in ascending values.

/**
 * The index of the last value that is at most a limit, in the first `count` of ascending values.
 * @template T
 * @param {ArrayLike<T>} values
 * @param {number} limit
 * @param {number} [count]
 * @param {(value: T) => number} [numberOf] what ascends
 */
export function lastAtMost(values, limit, count = values.length, numberOf = Number) {
  let low = 0;
  let high = count - 1;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (numberOf(values[middle]) <= limit) low = middle;
    else high = middle - 1;
  }
  return low;
}
