# Compiles through ccache where it is installed. Paths inside the source tree enter the cache
# relative to it, so that clones share their results.
find_program(PARIO_CCACHE ccache)
if(PARIO_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(
    launcher
    "${CMAKE_COMMAND}"
    -E
    env
    "CCACHE_BASEDIR=${PROJECT_SOURCE_DIR}"
    CCACHE_NOHASHDIR=1
    CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime
    "${PARIO_CCACHE}"
  )
  set(CMAKE_C_COMPILER_LAUNCHER ${launcher})
  set(CMAKE_CXX_COMPILER_LAUNCHER ${launcher})
endif()
