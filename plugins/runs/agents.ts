// The agents that come with the product.
import type { Agent } from './api.ts'

export const builtIn: readonly Agent[] = [
  {
    key: 'main',
    name: 'Assistant',
    instruction: 'Answer the request. Use the material given. Say what you do not know.',
  },
  {
    key: 'interactive',
    name: 'Interactive assistant',
    instruction:
      'Answer the request briefly and ask when something is unclear. Use the material given.',
  },
]
