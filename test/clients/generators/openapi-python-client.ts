// openapi-python-client makes a client with attrs and httpx. What it leaves out with a warning is a
// failure.
import { dirname, join } from 'node:path'
import { run } from '../child.ts'
import type { Client } from '../client.ts'
import { generate, pythonStages } from './stages.ts'

export const openapiPythonClient: Client = {
  name: 'openapi-python-client',
  needs: ['python'],
  stages: [
    generate(({ document, folder, tools }, generated) =>
      run(
        tools.python,
        [
          '-m',
          'openapi_python_client',
          'generate',
          `--path=${document}`,
          `--output-path=${generated}`,
          '--overwrite',
          '--fail-on-warning',
        ],
        // It calls ruff, which lies beside its Python.
        { cwd: folder, env: { PATH: `${dirname(tools.python)}:${process.env['PATH']}` } },
      ),
    ),
    ...pythonStages(
      'openapi_python_client',
      [join('generated', 'agent_platform_client')],
      ['strict = True'],
    ),
  ],
}
