/* Of a library in a page: one thread, no files, and the functions that module.mjs calls. */
typedef void part(void *row, int64_t from, int64_t to, int64_t who);
typedef struct {
  char nothing;
} host;
/* FUNCTIONS */
#define EXPORT(name) __attribute__((export_name(#name)))
/* ---- threads ---- */
int64_t INNER(threads)(void) { return 1; }

void INNER(parallel)(part *body, void *row, int64_t units, int64_t cost, int64_t most) {
  (void)cost, (void)most;
  body(row, 0, units, 0);
}

static void begin_host(instance *m) { (void)m; }

static void end_host(instance *m) { (void)m; }

/* ---- weights: a file's content is what options.weights points to ---- */
static size_t content_bytes;
static int created;

static int read_weights(instance *m, const char *content) {
  size_t known = sizeof HEADER - 1;
  unsigned char length[8] = {0};
  for (int i = 0; i < 8; i++) length[i] = (unsigned char)((uint64_t)known >> (8 * i));
  if (content_bytes != 8 + known + WEIGHTS_BYTES || memcmp(content, length, 8) || memcmp(content + 8, HEADER, known))
    return fail(NULL, CODE(BAD_FILE), "these are no weights of " TITLE);
  memcpy(m->own, content + 8 + known, WEIGHTS_BYTES);
  return CODE(OK);
}

EXPORT(weights) const unsigned char *page_weights(const instance *m) { return m->weights; }

/* ---- instances and memory ---- */
int NAME(create)(const OPTIONS *options, instance **made);
void NAME(free)(instance *m);
const char *NAME(error)(const instance *m);

EXPORT(create) instance *page_create(int64_t seed, int64_t most_bytes, const char *weights, size_t bytes) {
  instance *made;
  OPTIONS options = {.weights = weights, .most_bytes = (uint64_t)most_bytes, .seed = (uint64_t)seed};
  content_bytes = bytes;
  created = NAME(create)(&options, &made);
  return made;
}

EXPORT(created) int page_created(void) { return created; }

EXPORT(free) void page_free(instance *m) { NAME(free)(m); }

EXPORT(error) const char *page_error(const instance *m) { return NAME(error)(m); }

EXPORT(allocate) void *page_allocate(size_t bytes) {
  return bytes > SIZE_MAX - 64 ? NULL : aligned_alloc(64, (bytes + 63) & ~(size_t)63);
}

EXPORT(release) void page_release(void *block) { free(block); }

/* ---- a run ---- */
static int run(instance *m, int number, const void *inputs, void *outputs);

EXPORT(run) int page_run(instance *m, int number, const void *inputs, void *outputs) {
  return run(m, number, inputs, outputs);
}

EXPORT(layout) const uint32_t *page_layout(int number) { return LAYOUTS[number]; }
