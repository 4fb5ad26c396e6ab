// Calls HDF5 through a weak reference, which is null where there is no HDF5.
#include <stdio.h>

__attribute__((weak)) long H5Fopen(const char* name, unsigned flags, long access);
__attribute__((weak)) int H5open(void);

int main(void) {
  printf("%d\n", H5open != NULL);
  if (H5Fopen != NULL) printf("%ld\n", H5Fopen("data.h5", 0, 0));
  return 0;
}
