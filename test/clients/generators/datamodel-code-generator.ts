// datamodel-code-generator makes pydantic models only. Its journey asks by httpx, and reads each
// answer by its model.
import { join } from 'node:path'
import { run } from '../child.ts'
import type { Client } from '../client.ts'
import { generate, pythonStages } from './stages.ts'

export const datamodelCodeGenerator: Client = {
  name: 'datamodel-code-generator',
  needs: ['python'],
  stages: [
    generate(({ document, folder, tools }, generated) =>
      run(
        tools.python,
        [
          '-m',
          'datamodel_code_generator',
          `--input=${document}`,
          '--input-file-type=openapi',
          `--output=${join(generated, 'models.py')}`,
          '--output-model-type=pydantic_v2.BaseModel',
          '--target-python-version=3.11',
          '--formatters=builtin',
          // Constraints in annotations are what type checkers read.
          '--use-annotated',
        ],
        { cwd: folder },
      ),
    ),
    ...pythonStages(
      'datamodel_code_generator',
      [join('generated', 'models.py')],
      ['strict = True', 'plugins = pydantic.mypy'],
    ),
  ],
}
