# zstd, linked statically, because a preloaded library must not load libraries into other programs.
# Debian's libzstd-dev if it is installed, otherwise the amalgamated source in the source package
# `zstandard` on PyPI.
include(CheckLinkerFlag)
set(PARIO_ZSTD_SDIST zstandard==0.25.0)

find_path(PARIO_ZSTD_INCLUDE zstd.h)
find_library(PARIO_ZSTD_STATIC NAMES libzstd.a)

# On some systems the static library cannot be linked into a shared one with local symbols, because
# it is not position-independent.
if(PARIO_ZSTD_INCLUDE AND PARIO_ZSTD_STATIC AND NOT DEFINED PARIO_ZSTD_USABLE)
  set(trial "${CMAKE_BINARY_DIR}/zstd-trial.c")
  file(
    WRITE "${trial}"
    "#include <zstd.h>\n"
    "size_t trial(ZSTD_CCtx* c, void* d, size_t n)\n"
    "{ return ZSTD_compressCCtx(c, d, n, d, n, 1); }\n"
  )
  execute_process(
    COMMAND
      "${CMAKE_C_COMPILER}" -shared -fPIC -I "${PARIO_ZSTD_INCLUDE}" "${trial}"
      "${PARIO_ZSTD_STATIC}" -Wl,--exclude-libs,ALL -o "${CMAKE_BINARY_DIR}/zstd-trial.so"
    RESULT_VARIABLE failed
    OUTPUT_QUIET
    ERROR_QUIET
  )
  string(COMPARE EQUAL "${failed}" 0 usable)
  set(PARIO_ZSTD_USABLE ${usable} CACHE INTERNAL "libzstd.a can be linked into a shared library")
endif()

if(PARIO_ZSTD_USABLE)
  add_library(pario_zstd STATIC IMPORTED)
  set_target_properties(
    pario_zstd
    PROPERTIES
      IMPORTED_LOCATION "${PARIO_ZSTD_STATIC}"
      INTERFACE_INCLUDE_DIRECTORIES "${PARIO_ZSTD_INCLUDE}"
  )
else()
  find_package(Python COMPONENTS Interpreter REQUIRED)
  set(dir "${CMAKE_BINARY_DIR}/zstd")
  if(NOT EXISTS "${dir}/zstd/zstd.c")
    message(STATUS "zstd: not installed as a static library; taking ${PARIO_ZSTD_SDIST} from PyPI")
    execute_process(
      # Its build script fails with the variables of wheels for other processors.
      COMMAND
        "${CMAKE_COMMAND}" -E env --unset=SETUPTOOLS_EXT_SUFFIX --unset=_PYTHON_HOST_PLATFORM
        "${Python_EXECUTABLE}" -m pip download -q --no-deps --no-binary :all: -d "${dir}"
        ${PARIO_ZSTD_SDIST}
      RESULT_VARIABLE failed
    )
    file(GLOB sdist "${dir}/zstandard-*.tar.gz")
    if(failed AND NOT sdist)
      message(
        FATAL_ERROR
        "zstd: neither libzstd.a (Debian: libzstd-dev) nor ${PARIO_ZSTD_SDIST} (PyPI) is available"
      )
    endif()
    execute_process(
      COMMAND tar -xzf "${sdist}" --strip-components=1 -C "${dir}"
      COMMAND_ERROR_IS_FATAL ANY
    )
  endif()
  add_library(pario_zstd STATIC "${dir}/zstd/zstd.c")
  target_include_directories(pario_zstd PUBLIC "${dir}/zstd")
  target_compile_options(pario_zstd PRIVATE -O2 -w -fvisibility=hidden)
  # Its headers would make the functions visible in spite of that.
  target_compile_definitions(
    pario_zstd
    PRIVATE ZSTDLIB_VISIBLE= ZSTDERRORLIB_VISIBLE= ZDICTLIB_VISIBLE=
  )
endif()
# A static runtime of a sanitizer must keep its symbols: the C++ library calls its malloc and free.
# Zig's linker lacks the option, and its libraries are compiled with hidden symbols.
check_linker_flag(CXX "-Wl,--exclude-libs,ALL" PARIO_LINKER_HIDES_LIBRARIES)
if(PARIO_SANITIZE)
  target_link_options(pario_zstd INTERFACE -Wl,--exclude-libs,libzstd.a)
elseif(PARIO_LINKER_HIDES_LIBRARIES)
  target_link_options(pario_zstd INTERFACE -Wl,--exclude-libs,ALL)
endif()
