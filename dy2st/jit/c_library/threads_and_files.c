/* Of a library in a process: its threads, and the files of its weights. */
typedef void part(void *row, int64_t from, int64_t to, int64_t who);
typedef struct {
  pthread_t *threads;
  pthread_mutex_t lock;
  pthread_cond_t begin, end;
  int count, at_work;
  bool quit;
  uint64_t number;
  part *body;
  void *row;
  int64_t units, step, team;
  atomic_int_least64_t next;
} pool, host;
/* FUNCTIONS */
/* ---- threads ---- */
int64_t INNER(threads)(void) {
  instance *m = running;
  return m && m->options.threads > 1 ? m->options.threads : 1;
}

static void work(pool *p, int64_t who) {
  for (int64_t from; (from = atomic_fetch_add(&p->next, p->step)) < p->units;)
    p->body(p->row, from, from + p->step < p->units ? from + p->step : p->units, who);
}

typedef struct {
  pool *pool;
  int64_t who;
} member;

static void *worker(void *given) {
  member me = *(member *)given;
  pool *p = me.pool;
  uint64_t seen = 0;
  free(given);
  pthread_mutex_lock(&p->lock);
  for (;;) {
    while (!p->quit && p->number == seen) pthread_cond_wait(&p->begin, &p->lock);
    if (p->quit) break;
    seen = p->number;
    if (me.who < p->team) {
      pthread_mutex_unlock(&p->lock);
      work(p, me.who);
      pthread_mutex_lock(&p->lock);
    }
    if (--p->at_work == 0) pthread_cond_signal(&p->end);
  }
  pthread_mutex_unlock(&p->lock);
  return NULL;
}

static void hire(pool *p, int wanted) {
  if (p->threads || !(p->threads = calloc((size_t)wanted, sizeof *p->threads))) return;
  while (p->count < wanted) {
    member *new = malloc(sizeof *new);
    if (!new) return;
    *new = (member){p, p->count + 1};
    if (pthread_create(&p->threads[p->count], NULL, worker, new)) {
      free(new);
      return;
    }
    p->count++;
  }
}

static void begin_host(instance *m) {
  pthread_mutex_init(&m->host.lock, NULL);
  pthread_cond_init(&m->host.begin, NULL);
  pthread_cond_init(&m->host.end, NULL);
}

static void end_host(instance *m) {
  pool *p = &m->host;
  pthread_mutex_lock(&p->lock);
  p->quit = true;
  pthread_cond_broadcast(&p->begin);
  pthread_mutex_unlock(&p->lock);
  for (int i = 0; i < p->count; i++) pthread_join(p->threads[i], NULL);
  free(p->threads);
  pthread_cond_destroy(&p->begin);
  pthread_cond_destroy(&p->end);
  pthread_mutex_destroy(&p->lock);
}

void INNER(parallel)(part *body, void *row, int64_t units, int64_t cost, int64_t most) {
  instance *m = running;
  int64_t team = INNER(threads)();
  (void)cost;
  team = team < most ? team : most;
  team = team < units ? team : units;
  if (team < 2) {
    body(row, 0, units, 0);
    return;
  }
  if (m->options.parallel) {
    m->options.parallel(m->options.user, body, row, units, team);
    return;
  }
  pool *p = &m->host;
  hire(p, m->options.threads - 1);
  pthread_mutex_lock(&p->lock);
  p->body = body, p->row = row, p->units = units, p->team = team;
  p->step = units / (4 * team) ? units / (4 * team) : 1;
  p->at_work = p->count;
  atomic_store(&p->next, 0);
  p->number++;
  pthread_cond_broadcast(&p->begin);
  pthread_mutex_unlock(&p->lock);
  running = NULL; /* what the parts call runs alone */
  work(p, 0);
  running = m;
  pthread_mutex_lock(&p->lock);
  while (p->at_work) pthread_cond_wait(&p->end, &p->lock);
  pthread_mutex_unlock(&p->lock);
}

/* ---- files ---- */
static int read_weights(instance *m, const char *path) {
  unsigned char length[8] = {0}, *header = NULL;
  size_t known = sizeof HEADER - 1;
  for (int i = 0; i < 8; i++) length[i] = (unsigned char)((uint64_t)known >> (8 * i));
  FILE *file = fopen(path, "rb");
  if (!file) return fail(NULL, CODE(BAD_FILE), "'%s' cannot be read", path);
  bool good = (header = malloc(known + 8)) && fread(header, 1, known + 8, file) == known + 8 &&
              !memcmp(header, length, 8) && !memcmp(header + 8, HEADER, known) &&
              fread(m->own, 1, WEIGHTS_BYTES, file) == WEIGHTS_BYTES && fgetc(file) == EOF;
  fclose(file);
  free(header);
  return good ? CODE(OK) : fail(NULL, CODE(BAD_FILE), "'%s' is no whole file of the weights of " TITLE, path);
}

PUBLIC int NAME(save)(const instance *m, const char *path) {
  FILE *file = fopen(path, "wb");
  unsigned char length[8];
  for (int i = 0; i < 8; i++) length[i] = (unsigned char)((uint64_t)(sizeof HEADER - 1) >> (8 * i));
  bool good = file && fwrite(length, 1, 8, file) == 8 && fwrite(HEADER, 1, sizeof HEADER - 1, file) == sizeof HEADER - 1 &&
              fwrite(m->weights, 1, WEIGHTS_BYTES, file) == WEIGHTS_BYTES;
  if (file && fclose(file)) good = false;
  return good ? CODE(OK) : CODE(BAD_FILE);
}
