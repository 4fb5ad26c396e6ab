# Toolchain file of `make wheel`: Zig from PyPI (package ziglang) compiles for a processor
# (PARIO_WHEEL_PROCESSOR) and an old glibc (PARIO_WHEEL_GLIBC), on any host and
# without a container. Its libc++, libc++abi and libunwind become parts of each library, with hidden
# symbols, so that they neither need nor meet the program's C++ library.
list(APPEND CMAKE_TRY_COMPILE_PLATFORM_VARIABLES PARIO_ZIG PARIO_WHEEL_PROCESSOR PARIO_WHEEL_GLIBC)
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR "${PARIO_WHEEL_PROCESSOR}")
set(target -target "${PARIO_WHEEL_PROCESSOR}-linux-gnu.${PARIO_WHEEL_GLIBC}")
foreach(language IN ITEMS C CXX)
  set(CMAKE_${language}_ARCHIVE_CREATE "\"${PARIO_ZIG}\" ar qc <TARGET> <OBJECTS>")
  set(CMAKE_${language}_ARCHIVE_APPEND "\"${PARIO_ZIG}\" ar q <TARGET> <OBJECTS>")
  set(CMAKE_${language}_ARCHIVE_FINISH "\"${PARIO_ZIG}\" ranlib <TARGET>")
endforeach()
set(CMAKE_C_COMPILER "${PARIO_ZIG}" cc ${target})
set(CMAKE_CXX_COMPILER "${PARIO_ZIG}" c++ ${target})
# nanobind uses stderr without a header that declares it in libc++.
set(CMAKE_CXX_FLAGS_INIT "-include stdio.h")
# Without the debug information of Zig's libraries, which is nine times as large as the code.
set(CMAKE_SHARED_LINKER_FLAGS_INIT -Wl,-s)
set(CMAKE_MODULE_LINKER_FLAGS_INIT -Wl,-s)

# FindPython cannot compare the headers that scikit-build-core names with an ABI when it compiles
# for another system.
unset(Python_FIND_ABI CACHE)

# Libraries and headers of the host are of another glibc, or of another processor.
set(PARIO_ZSTD_USABLE OFF)
set(FUSE3_LIBRARY FUSE3_LIBRARY-NOTFOUND)
set(PARIO_CCACHE OFF) # takes the first argument of `zig c++` for a source file
