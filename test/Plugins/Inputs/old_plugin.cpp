// The entry point of a plugin of another genrec, without headers of any.
#ifndef VERSION
#define VERSION "genrec 0.0.1"
#endif

struct Info {
  unsigned apiVersion;
  const char *name;
  const char *version;
  void (*registerDialects)(void *);
};

extern "C" Info mlirGetDialectPluginInfo() {
  return {1, "old", VERSION, [](void *) {}};
}
