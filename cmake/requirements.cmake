# Ends the configuration with one sentence and its remedy if a requirement of a build is missing.
# Included before project(), which looks for compilers itself and says less.
set(PARIO_GNU 11)
set(PARIO_CLANG 16)
set(
  PARIO_REMEDY
  "install g++ ${PARIO_GNU} or later (Debian: apt-get install g++), name another compiler by the \
variable CXX, or install a wheel, which needs no compiler (docs/install.md)"
)

# A compiler of any name that CMake would find, or those that CXX and CC name: pip builds with the
# names of the compilers that built Python.
function(pario_require_compiler)
  if(CMAKE_CXX_COMPILER OR CMAKE_TOOLCHAIN_FILE)
    return()
  endif()
  foreach(variable IN ITEMS CXX CC)
    if(NOT "$ENV{${variable}}" STREQUAL "")
      separate_arguments(words UNIX_COMMAND "$ENV{${variable}}")
      list(GET words 0 name)
      find_program(PARIO_NAMED_${variable} NAMES "${name}" NO_CACHE)
      if(NOT PARIO_NAMED_${variable})
        message(
          FATAL_ERROR
          "pario: there is no compiler ${name}, which ${variable} names: ${PARIO_REMEDY}"
        )
      endif()
    endif()
  endforeach()
  if(NOT "$ENV{CXX}" STREQUAL "")
    return()
  endif()
  find_program(
    PARIO_COMPILER
    NAMES c++ g++ CC clang++ icpx icpc nvc++ pgc++ NO_CACHE
  )
  if(NOT PARIO_COMPILER)
    message(FATAL_ERROR "pario: there is no C++ compiler: ${PARIO_REMEDY}")
  endif()
endfunction()

# C++20 as far as pario uses it.
function(pario_require_standard id version)
  if(
    (id STREQUAL "GNU" AND version VERSION_LESS PARIO_GNU)
    OR (id STREQUAL "Clang" AND version VERSION_LESS PARIO_CLANG)
  )
    message(FATAL_ERROR "pario: ${id} ${version} is too old for C++20: ${PARIO_REMEDY}")
  endif()
endfunction()

# An interpreter with the headers for extension modules; `found`: that of find_package.
function(pario_require_python found)
  if(NOT found)
    message(
      FATAL_ERROR
      "pario: there is no Python 3.11 or later with headers: install them (Debian: apt-get install \
python3-dev), or install a wheel, which needs none (docs/install.md)"
    )
  endif()
endfunction()

# In a test: cmake -DID=GNU -DVERSION=9.4 -P cmake/requirements.cmake
if(CMAKE_SCRIPT_MODE_FILE)
  pario_require_standard("${ID}" "${VERSION}")
  pario_require_python("${PYTHON}")
endif()
