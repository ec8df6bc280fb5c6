// Seeds of `npm run simulate` that once failed.
export const regressions: readonly number[] = [1]
