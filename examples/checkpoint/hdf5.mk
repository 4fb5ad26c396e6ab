# Flags of serial HDF5.
HDF5_PACKAGE ?= $(shell pkg-config --exists hdf5-serial && echo hdf5-serial || echo hdf5)
HDF5_CFLAGS ?= $(shell pkg-config --cflags $(HDF5_PACKAGE))
HDF5_LIBS ?= $(shell pkg-config --libs $(HDF5_PACKAGE))
