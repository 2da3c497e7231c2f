// The entry point of a plugin of another genrec, without headers of any.
struct Info {
  unsigned apiVersion;
  const char *name;
  const char *version;
  void (*registerDialects)(void *);
};

extern "C" Info mlirGetDialectPluginInfo() {
  return {1, "old", "genrec 0.0.1", [](void *) {}};
}
