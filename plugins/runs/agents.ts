// The catalogue of agents: whoever contributes to the point makes an `app_name` known.
import { point } from '#kernel'

export type Agent = { readonly key: string; readonly name: string; readonly instruction: string }
export const Agents = point<Agent>('agents')

export const builtIn: readonly Agent[] = [
  { key: 'main', name: 'Assistant', instruction: 'Answer the request. Use the material given. Say what you do not know.' },
  { key: 'interactive', name: 'Interactive assistant', instruction: 'Answer the request briefly and ask when something is unclear. Use the material given.' },
]
