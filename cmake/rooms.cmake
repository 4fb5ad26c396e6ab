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
endfunction()

# One precompiled header of standard headers for all rooms, made by room base. The rooms that
# define the C library's functions under other prototypes see no header but their own.
set(PARIO_ROOMS_WITHOUT_PCH preload pmpi)

function(pario_precompile room)
  if(room IN_LIST PARIO_ROOMS_WITHOUT_PCH)
    return()
  elseif(room STREQUAL base)
    target_precompile_headers(pario_base PRIVATE "${PROJECT_SOURCE_DIR}/cmake/precompiled.hpp")
  else()
    target_precompile_headers(pario_${room} REUSE_FROM pario_base)
  endif()
endfunction()
