// Seeds of `npm run simulate` that once failed.
export const regressions: readonly number[] = [
  1, 2565, 3697, 6844, 7177, 3082, 7327, 7342, 8212, 16117,
]
