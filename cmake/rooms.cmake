# A room is a folder under src/. Its sources become one object library, without those that are named behind it; who may include whom is kept by
# tools/check_rooms.py.
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
  # The descriptor tables are large arrays of constants, which Clang counts element by element.
  target_compile_options(pario_${name} PRIVATE $<$<CXX_COMPILER_ID:Clang>:-fconstexpr-steps=200000000>)
  if(PARIO_SANITIZE)
    target_compile_options(pario_${name} PUBLIC -fsanitize=${PARIO_SANITIZE} -fno-omit-frame-pointer)
    target_link_options(pario_${name} PUBLIC -fsanitize=${PARIO_SANITIZE})
  endif()
endfunction()
