# A module is a folder of a component, src/COMPONENT/MODULE. Its sources become the object library
# pario_MODULE, except the sources named after the module's path; tools/check_modules.py checks the
# includes between modules.
function(pario_module path)
  set(folder "${CMAKE_CURRENT_SOURCE_DIR}/${path}")
  get_filename_component(name "${path}" NAME)
  file(GLOB sources CONFIGURE_DEPENDS "${folder}/*.cpp" "${folder}/*.S")
  foreach(source IN LISTS ARGN)
    list(REMOVE_ITEM sources "${folder}/${source}")
  endforeach()
  add_library(pario_${name} OBJECT ${sources})
  target_include_directories(pario_${name} PUBLIC "${CMAKE_CURRENT_SOURCE_DIR}")
  target_compile_definitions(pario_${name} PRIVATE _GNU_SOURCE)
  target_compile_options(
    pario_${name}
    PRIVATE -Wall -Wextra -Wshadow -Wconversion -Wno-sign-conversion -fvisibility=hidden
  )
  # Clang counts the large constant arrays of the descriptor tables element by element.
  target_compile_options(
    pario_${name}
    PRIVATE $<$<CXX_COMPILER_ID:Clang>:-fconstexpr-steps=200000000>
  )
  if(PARIO_SANITIZE)
    target_compile_options(
      pario_${name}
      PUBLIC -fsanitize=${PARIO_SANITIZE} -fno-omit-frame-pointer
    )
    if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
      # False positives of GCC 12; other warnings are errors in the presets of the sanitizers.
      target_compile_options(
        pario_${name}
        PUBLIC -Wno-error=maybe-uninitialized -Wno-error=array-bounds -Wno-error=tsan
      )
    endif()
    target_link_options(pario_${name} PUBLIC -fsanitize=${PARIO_SANITIZE})
  endif()
  if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang" AND path MATCHES "^(layers|observe)/")
    # Their functions are on the stack when a thread is cancelled. With exceptions, Clang gives them
    # clean-ups, by which the program's unwinder would call this library's own one (trace.hpp).
    target_compile_options(pario_${name} PRIVATE -fno-exceptions)
    target_precompile_headers(pario_${name} PRIVATE "${PROJECT_SOURCE_DIR}/cmake/precompiled.hpp")
  else()
    pario_precompile(${name})
  endif()
  if(NOT name IN_LIST PARIO_MODULES_WITHOUT_UNITY)
    pario_join_sources(pario_${name} 5)
  endif()
endfunction()

# Compiles up to `batch` sources of a target together. Relative paths let clones share the
# compiler cache (CMake 4; older versions write absolute ones).
function(pario_join_sources target batch)
  set_target_properties(
    ${target}
    PROPERTIES UNITY_BUILD ${PARIO_UNITY} UNITY_BUILD_BATCH_SIZE ${batch} UNITY_BUILD_RELOCATABLE ON
  )
endfunction()

# Modules whose sources define functions under several prototypes, by macros of the same names.
set(PARIO_MODULES_WITHOUT_UNITY preload pmpi)

# One precompiled header of standard headers for all modules, made by module base.
function(pario_precompile module)
  if(module STREQUAL base)
    target_precompile_headers(pario_base PRIVATE "${PROJECT_SOURCE_DIR}/cmake/precompiled.hpp")
  else()
    target_precompile_headers(pario_${module} REUSE_FROM pario_base)
  endif()
endfunction()
