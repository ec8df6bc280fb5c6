// @hey-api/openapi-ts makes a client with functions, which reads event streams by itself.
import { npmCommand, run } from '../child.ts'
import type { Client } from '../client.ts'
import { generate, typescriptStages } from './stages.ts'

export const heyApi: Client = {
  name: '@hey-api/openapi-ts',
  needs: ['node'],
  stages: [
    generate(({ document, folder, tools }, generated) =>
      run(npmCommand(tools.node, 'openapi-ts'), ['--input', document, '--output', generated], {
        cwd: folder,
      }),
    ),
    ...typescriptStages('hey-api'),
  ],
}
