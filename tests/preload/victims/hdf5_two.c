// Uses an HDF5 of its own and that of a plug-in.
// usage: hdf5_two PLUGIN
#include <dlfcn.h>
#include <stdio.h>

int count_numbers(const char* name);

int main(int argc, char** argv) {
  void* plugin = argc == 2 ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE) : NULL;
  if (plugin == NULL) return 2;
  int (*other)(const char*) = (int (*)(const char*))dlsym(plugin, "count_numbers_of_plugin");
  const int before = count_numbers("main.h5"), there = other("plugin.h5");
  printf("%d %d %d\n", before, there, count_numbers("main.h5"));
  return 0;
}
