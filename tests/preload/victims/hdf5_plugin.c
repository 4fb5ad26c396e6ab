// Writes and reads a dataset of a few numbers with the HDF5 that this object is linked with.
#include <hdf5.h>

int count_numbers(const char* name) {
  const hsize_t shape = 5;
  int numbers[5] = {1, 2, 3, 4, 5};
  const hid_t file = H5Fcreate(name, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
  const hid_t space = H5Screate_simple(1, &shape, NULL);
  const hid_t data =
      H5Dcreate2(file, "numbers", H5T_NATIVE_INT, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
  H5Dwrite(data, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, numbers);
  numbers[4] = 0;
  H5Dread(data, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, numbers);
  H5Dclose(data);
  H5Sclose(space);
  H5Fclose(file);
  return numbers[4];
}
