// What a schema is refused for, though no schema of schemas is consulted: a partner's slip must not become a check that lets everything through.
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { createValidator } from '#kernel'

const refused: readonly (readonly [object, RegExp])[] = [
  [{ type: 'strng' }, /type must be JSONType/],
  [{ type: 'string', minLength: '1' }, /minLength value must be/],
  [{ type: 'object', propertees: {} }, /unknown keyword: "propertees"/],
  [{ type: 'object', required: 'name' }, /required value must be/],
  [{ type: 'object', properties: { name: 'string' } }, /unknown keyword/],
  [{ type: 'string', pattern: '(' }, /Invalid regular expression/],
  [{ type: 'string', format: 'isbn' }, /unknown format "isbn"/],
  [{ type: 'array', items: 'string' }, /items value must be/],
  [{ $ref: '#/elsewhere' }, /can't resolve reference/],
  [{ enum: [] }, /enum must have non-empty array/],
]
for (const [schema, why] of refused) {
  test(`refuses the schema ${JSON.stringify(schema)}`, () => {
    assert.throws(() => createValidator().check('body', schema as never), why)
  })
}

test.run()
