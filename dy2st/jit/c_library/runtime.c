typedef union {
  void *pointer;
  int64_t integer;
} word;

enum { NUMBER, REGISTERS, MEMORY };
/* An argument or a result. A number or a tensor without axes stands in its field of the struct of inputs or outputs. */
typedef struct {
  const char *name;
  int form, size, rank, words;
  const int64_t *extents; /* one below zero is a symbol: -1 - its number */
  size_t data, shape, strides; /* where they stand in the struct */
  int state; /* which tensor of the state, or SEED, DRAW; NONE for what the caller gives or takes */
} value;

enum { NONE = -1, SEED = -2, DRAW = -3 };

typedef struct {
  size_t offset, bytes;
  const int64_t *shape;
} tensor;

typedef struct {
  int32_t (*run)(void *context, word *operands, word *results);
  void *(*allocate)(void *context, int64_t bytes);
  void (*release)(void *context, void *block);
  void *(*make)(void *context, int64_t bytes, int64_t class);
  const void *library;
  int arguments, results, symbols, operand_words, result_words, constants;
  const value *values; /* the arguments, then the results */
  const char *const *failures;
  const size_t *constant_offsets;
} entry;

/* TABLES */

typedef struct {
  word context[CONTEXT_BYTES / 8];
  word *operands, *results, *constants;
  void **copies;
  int64_t *symbols;
} space;

struct MODEL {
  OPTIONS options;
  const unsigned char *weights;
  unsigned char *own; /* the weights, where they are not the built-in ones */
  space spaces[ENTRIES];
  int64_t most, seed, draw, failure;
  bool no_memory;
  atomic_flag busy;
  host host;
  char text[512];
};

static _Thread_local instance *running;
static _Thread_local char text_of_none[512];

static int fail(instance *m, int code, const char *format, ...) {
  va_list rest;
  va_start(rest, format);
  vsnprintf(m ? m->text : text_of_none, sizeof(m->text), format, rest);
  va_end(rest);
  return code;
}

/* ---- memory ---- */
static void *get(const OPTIONS *o, uint64_t wanted) {
  if (wanted > SIZE_MAX / 2) return NULL;
  size_t bytes = ((size_t)wanted + 63) & ~(size_t)63;
  return o->allocate ? o->allocate(o->user, 64, bytes ? bytes : 64) : aligned_alloc(64, bytes ? bytes : 64);
}

static void give(const OPTIONS *o, void *memory) {
  if (!memory) return;
  if (o->deallocate) o->deallocate(o->user, memory);
  else free(memory);
}

void *INNER(new)(int64_t align, int64_t bytes) {
  (void)align;
  return get(&running->options, (uint64_t)bytes);
}

void INNER(old)(void *block) { give(&running->options, block); }

static void *made(void *context, int64_t bytes, int64_t class) {
  instance *m = running;
  for (int i = 0; i < ENTRIES; i++) {
    if (context != m->spaces[i].context) continue;
    void *block = TABLE[i].make(context, bytes, class);
    m->no_memory |= block == NULL;
    return block;
  }
  return NULL;
}

static void begin(instance *m, int i) {
  space *s = &m->spaces[i];
  memset(s->context, 0, sizeof s->context);
  s->context[AT_ALLOCATE / 8].pointer = (void *)made;
  s->context[AT_CONSTANTS / 8].pointer = s->constants;
  s->context[AT_LIBRARY / 8].pointer = (void *)TABLE[i].library;
  s->context[AT_LIMIT / 8].pointer = &m->most;
}

/* After an error some blocks may still count holders: all go back. */
static void clear(instance *m, int i) {
  space *s = &m->spaces[i];
  for (unsigned char *block = s->context[AT_BLOCKS / 8].pointer, *older; block; block = older) {
    memcpy(&older, block + 24, sizeof older);
    give(&m->options, block);
  }
  begin(m, i);
  memset(s->results, 0, sizeof(word) * (size_t)TABLE[i].result_words);
}

/* ---- what the code calls ---- */
int32_t INNER(failed)(void *context, int64_t number, void *operands, void *results) {
  (void)context, (void)operands, (void)results;
  if (running->failure < 0) running->failure = number;
  return RAISED;
}

int64_t INNER(lowest)(int64_t here) { return here - STACK; }

/* HOST */
/* ---- arguments ---- */
static bool row_major(const value *v, const int64_t *shape, const int64_t *strides) {
  int64_t step = 1;
  bool given = false, apart = false;
  for (int i = v->rank; i--; step *= shape[i]) {
    given |= strides[i] != 0;
    apart |= shape[i] != 1 && strides[i] != step;
  }
  return !(given && apart);
}

static unsigned char *gather(unsigned char *to, const unsigned char *from, int rank, const int64_t *shape,
                             const int64_t *strides, int size) {
  if (rank == 0) {
    memcpy(to, from, (size_t)size);
    return to + size;
  }
  for (int64_t i = 0; i < *shape; i++)
    to = gather(to, from + i * *strides * size, rank - 1, shape + 1, strides + 1, size);
  return to;
}

static int take_extent(instance *m, const value *v, int axis, int64_t found, int64_t *symbols) {
  int64_t extent = v->extents[axis];
  if (extent < 0 && symbols[-1 - extent] < 0) symbols[-1 - extent] = found;
  int64_t wanted = extent < 0 ? symbols[-1 - extent] : extent;
  if (found == wanted && found >= 0) return CODE(OK);
  if (found < 0 || wanted < 0)
    return fail(m, CODE(INVALID), "input '%s': extent %lld of axis %d", v->name, (long long)found, axis);
  return fail(m, CODE(INVALID), "input '%s': extent %lld of axis %d is to be %lld", v->name, (long long)found, axis,
              (long long)wanted);
}

static void put(const value *v, word *row, const unsigned char *data, const int64_t *shape) {
  if (v->form == MEMORY) {
    row[0].pointer = NULL;
    row[1].pointer = (void *)data;
    for (int i = 0; i < v->rank; i++) row[2 + i].integer = shape[i];
    return;
  }
  for (int i = 0; i < v->words; i++) memcpy(&row[i], data + (size_t)i * (size_t)v->size, (size_t)v->size);
}

static int take(instance *m, int number, const value *v, word *row, const unsigned char *in, void **copy) {
  space *s = &m->spaces[number];
  if (v->form == NUMBER || v->rank == 0) {
    put(v, row, in + v->data, NULL);
    if (v->form == NUMBER && v->extents) return take_extent(m, v, 0, row->integer, s->symbols);
    return CODE(OK);
  }
  const unsigned char *data = *(const unsigned char *const *)(in + v->data);
  const int64_t *shape = (const int64_t *)(in + v->shape), *strides = (const int64_t *)(in + v->strides);
  int64_t count = 1;
  for (int i = 0; i < v->rank; i++) {
    int code = take_extent(m, v, i, shape[i], s->symbols);
    if (code) return code;
    if (shape[i] && count > ((int64_t)1 << 40) / shape[i])
      return fail(m, CODE(INVALID), "input '%s' has too many elements", v->name);
    count *= shape[i];
  }
  if (count && !data) return fail(m, CODE(INVALID), "input '%s' has no data", v->name);
  if (count && !row_major(v, shape, strides)) {
    *copy = TABLE[number].allocate(s->context, count * v->size);
    if (!*copy) return fail(m, CODE(NO_MEMORY), "no memory for input '%s'", v->name);
    gather((unsigned char *)*copy + HEAD, data, v->rank, shape, strides, v->size);
    data = (unsigned char *)*copy + HEAD;
  }
  put(v, row, data, shape);
  return CODE(OK);
}

/* ---- state ---- */
static const unsigned char *state_data(const instance *m, int state) {
  return state == SEED ? (const unsigned char *)&m->seed
       : state == DRAW ? (const unsigned char *)&m->draw
                       : m->weights + STATE[state].offset;
}

static void put_state(instance *m, int number) {
  const entry *e = &TABLE[number];
  word *row = m->spaces[number].operands;
  for (int i = 0; i < e->arguments; row += e->values[i++].words) {
    int state = e->values[i].state;
    if (state != NONE) put(&e->values[i], row, state_data(m, state), state < 0 ? NULL : STATE[state].shape);
  }
}

static int write_state(instance *m, const entry *e, const word *row) {
  for (const value *v = e->values + e->arguments, *end = v + e->results; v < end; row += v++->words) {
    if (v->state == NONE) continue;
    unsigned char *to = (unsigned char *)state_data(m, v->state);
    size_t bytes = (size_t)v->size;
    for (int i = 0; v->form == MEMORY && i < v->rank; i++) bytes *= (size_t)row[2 + i].integer;
    if (v->form == MEMORY && bytes != STATE[v->state].bytes)
      return fail(m, CODE(FAILED), "'%s' became a tensor of another shape", v->name);
    if (v->form == MEMORY) memmove(to, row[1].pointer, bytes);
    else
      for (int i = 0; i < v->words; i++) memcpy(to + (size_t)i * (size_t)v->size, &row[i], (size_t)v->size);
  }
  return CODE(OK);
}

/* ---- results ---- */
static void let_go(instance *m, int number) {
  const entry *e = &TABLE[number];
  space *s = &m->spaces[number];
  word *row = s->results;
  for (const value *v = e->values + e->arguments, *end = v + e->results; v < end; row += v++->words)
    if (v->form == MEMORY && row[0].pointer) {
      e->release(s->context, row[0].pointer);
      row[0].pointer = NULL;
    }
}

static int hand_over(instance *m, int number, unsigned char *out) {
  const entry *e = &TABLE[number];
  space *s = &m->spaces[number];
  word *row = s->results;
  for (const value *v = e->values + e->arguments, *end = v + e->results; v < end; row += v++->words) {
    if (v->state != NONE) continue;
    if (v->form != MEMORY && v->rank == 0) {
      memcpy(out + v->data, row, (size_t)v->size);
      continue;
    }
    int64_t count = 1, *shape = (int64_t *)(out + v->shape);
    for (int i = 0; i < v->rank; i++) count *= shape[i] = v->form == MEMORY ? row[2 + i].integer : v->extents[i];
    if (v->form == MEMORY && v->rank == 0) {
      memcpy(out + v->data, row[1].pointer, (size_t)v->size);
      continue;
    }
    unsigned char *data;
    if (v->form == REGISTERS) { /* the words themselves become the elements */
      data = (unsigned char *)row;
      for (int i = 0; i < v->words; i++) memmove(data + (size_t)i * (size_t)v->size, &row[i], (size_t)v->size);
    } else if (row[0].pointer) {
      data = row[1].pointer;
    } else { /* an input, a weight or a constant: the caller gets a copy */
      void *block = e->allocate(s->context, count * v->size);
      if (!block) return fail(m, CODE(NO_MEMORY), "no memory for output '%s'", v->name);
      row[0].pointer = block;
      data = (unsigned char *)block + HEAD;
      if (count) memcpy(data, row[1].pointer, (size_t)(count * v->size));
    }
    memcpy(out + v->data, &data, sizeof data);
  }
  return CODE(OK);
}

/* ---- a run ---- */
static int ended(instance *m, const entry *e) {
  if (m->no_memory) return fail(m, CODE(NO_MEMORY), "no memory, or more than options.most_bytes");
  if (m->failure >= 0) return fail(m, CODE(FAILED), "%s", e->failures[m->failure]);
  return fail(m, CODE(FAILED), "the run ended");
}

static int run(instance *m, int number, const void *inputs, void *outputs) {
  if (atomic_flag_test_and_set(&m->busy)) return CODE(BUSY);
  const entry *e = &TABLE[number];
  space *s = &m->spaces[number];
  instance *around = running;
  running = m;
  m->failure = -1;
  m->no_memory = false;
  m->text[0] = 0;
  let_go(m, number);
  int code = CODE(OK);
  for (int i = 0; i < e->symbols; i++) s->symbols[i] = -1;
  word *row = s->operands;
  for (int i = 0; i < e->arguments && !code; row += e->values[i++].words)
    if (e->values[i].state == NONE) code = take(m, number, &e->values[i], row, inputs, &s->copies[i]);
    else if (e->values[i].state < NONE) put(&e->values[i], row, state_data(m, e->values[i].state), NULL);
  if (!code) {
    if (e->run(s->context, s->operands, s->results)) {
      code = ended(m, e);
      clear(m, number);
      memset(s->copies, 0, sizeof(void *) * (size_t)e->arguments);
    } else if (!(code = hand_over(m, number, outputs))) {
      code = write_state(m, e, s->results);
      if (WRITES)
        for (int i = 0; i < ENTRIES; i++) put_state(m, i);
    }
  }
  for (int i = 0; i < e->arguments; i++)
    if (s->copies[i]) {
      e->release(s->context, s->copies[i]);
      s->copies[i] = NULL;
    }
  running = around;
  atomic_flag_clear(&m->busy);
  return code;
}

/* ---- instances ---- */
static bool prepare(instance *m, int i) {
  const entry *e = &TABLE[i];
  space *s = &m->spaces[i];
  s->operands = calloc((size_t)e->operand_words + 1, sizeof(word));
  s->results = calloc((size_t)e->result_words + 1, sizeof(word));
  s->constants = calloc((size_t)e->constants + 1, sizeof(word));
  s->symbols = calloc((size_t)e->symbols + 1, sizeof(int64_t));
  s->copies = calloc((size_t)e->arguments + 1, sizeof(void *));
  if (!s->operands || !s->results || !s->constants || !s->symbols || !s->copies) return false;
  for (int k = 0; k < e->constants; k++) s->constants[k].pointer = (void *)(INNER(constants) + e->constant_offsets[k]);
  begin(m, i);
  put_state(m, i);
  return true;
}

PUBLIC void NAME(free)(instance *m) {
  if (!m) return;
  instance *around = running;
  running = m;
  OPTIONS options = m->options;
  end_host(m);
  for (int i = 0; i < ENTRIES; i++) {
    space *s = &m->spaces[i];
    if (s->results) clear(m, i);
    free(s->operands), free(s->results), free(s->constants), free(s->symbols), free(s->copies);
  }
  give(&options, m->own);
  give(&options, m);
  running = around;
}

PUBLIC int NAME(create)(const OPTIONS *options, instance **made) {
  static const OPTIONS usual;
  *made = NULL;
  if (!options) options = &usual;
  if (!options->weights && !BUILT_IN)
    return fail(NULL, CODE(BAD_FILE), "the weights of " TITLE " are not built in: options.weights is to name their file");
  instance *m = get(options, sizeof *m);
  if (!m) return fail(NULL, CODE(NO_MEMORY), "no memory for an instance");
  memset(m, 0, sizeof *m);
  m->options = *options;
  m->most = options->most_bytes ? (int64_t)options->most_bytes : INT64_MAX;
  m->seed = (int64_t)options->seed;
  begin_host(m);
  m->weights = INNER(weights) + WEIGHTS_START;
  int code = CODE(OK);
  if (options->weights || WRITES) {
    m->own = get(options, WEIGHTS_BYTES);
    if (!m->own) code = fail(NULL, CODE(NO_MEMORY), "no memory for the weights");
    else if (options->weights) code = read_weights(m, options->weights);
    else memcpy(m->own, m->weights, WEIGHTS_BYTES);
    m->weights = m->own;
  }
  for (int i = 0; i < ENTRIES && !code; i++)
    if (!prepare(m, i)) code = fail(NULL, CODE(NO_MEMORY), "no memory for an instance");
  if (code) NAME(free)(m);
  else *made = m;
  return code;
}

PUBLIC const char *NAME(error)(const instance *m) { return m ? m->text : text_of_none; }
