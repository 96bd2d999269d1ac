"""The intermediate representation: types, values, operations, blocks, Programs, and the builder that makes them."""
