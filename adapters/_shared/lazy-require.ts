// `import` of a module that Node brings evaluates every export of it: of node:http also the
// WebSocket client, with all of undici behind it, 13 MiB that stay.
// `require` evaluates what is asked for.
import { createRequire } from 'node:module'

export const lazyRequire = createRequire(import.meta.url)
