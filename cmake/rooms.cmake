# A room is a folder under src/. Its sources become one object library, except the sources named
# after the room's name; tools/check_rooms.py checks which room may include which.
function(pario_room name)
  file(GLOB sources CONFIGURE_DEPENDS "${CMAKE_CURRENT_SOURCE_DIR}/${name}/*.cpp" "${CMAKE_CURRENT_SOURCE_DIR}/${name}/*.S")
  foreach(source IN LISTS ARGN)
    list(REMOVE_ITEM sources "${CMAKE_CURRENT_SOURCE_DIR}/${name}/${source}")
  endforeach()
  add_library(pario_${name} OBJECT ${sources})
  target_include_directories(pario_${name} PUBLIC "${CMAKE_CURRENT_SOURCE_DIR}")
  target_compile_definitions(pario_${name} PRIVATE PARIO_VERSION="${PROJECT_VERSION}" _GNU_SOURCE)
  target_compile_options(
    pario_${name}
    PRIVATE -Wall -Wextra -Wshadow -Wconversion -Wno-sign-conversion -fvisibility=hidden
  )
  # Clang counts the large constant arrays of the descriptor tables element by element.
  target_compile_options(pario_${name} PRIVATE $<$<CXX_COMPILER_ID:Clang>:-fconstexpr-steps=200000000>)
  if(PARIO_SANITIZE)
    target_compile_options(pario_${name} PUBLIC -fsanitize=${PARIO_SANITIZE} -fno-omit-frame-pointer)
    target_link_options(pario_${name} PUBLIC -fsanitize=${PARIO_SANITIZE})
  endif()
  pario_precompile(${name})
  if(NOT name IN_LIST PARIO_ROOMS_WITHOUT_UNITY)
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

# Rooms whose sources define functions under several prototypes, by macros of the same names.
set(PARIO_ROOMS_WITHOUT_UNITY preload pmpi)

# One precompiled header of standard headers for all rooms, made by room base.
function(pario_precompile room)
  if(room STREQUAL base)
    target_precompile_headers(pario_base PRIVATE "${PROJECT_SOURCE_DIR}/cmake/precompiled.hpp")
  else()
    target_precompile_headers(pario_${room} REUSE_FROM pario_base)
  endif()
endfunction()
