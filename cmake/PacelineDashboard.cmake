# The dashboard's page in the binary: PACELINE_DASHBOARD=AUTO|ON|OFF. Where Node.js and npm are there, dashboard/build makes its files, which are
# compressed and become data of the program; at run time nothing of Node is needed, and nothing is loaded from elsewhere.
#
#   paceline_embed_dashboard(TARGET)      adds the files to a library: dashboard::embedded_assets()

set(PACELINE_DASHBOARD AUTO CACHE STRING "The dashboard's page: AUTO (where Node.js and npm are), ON (an error without), OFF")
set_property(CACHE PACELINE_DASHBOARD PROPERTY STRINGS AUTO ON OFF)
if(NOT PACELINE_DASHBOARD MATCHES "^(AUTO|ON|OFF)$")
  message(FATAL_ERROR "PACELINE_DASHBOARD is \"${PACELINE_DASHBOARD}\": AUTO, ON and OFF are allowed")
endif()

find_program(PACELINE_NPM npm)
set(PACELINE_DASHBOARD_MISSING "")
if(PACELINE_DASHBOARD STREQUAL OFF)
  set(PACELINE_DASHBOARD_MISSING "PACELINE_DASHBOARD=OFF")
elseif(NOT EXISTS ${CMAKE_SOURCE_DIR}/dashboard/build)
  set(PACELINE_DASHBOARD_MISSING "there is no dashboard/build")
elseif(NOT PACELINE_NPM)
  set(PACELINE_DASHBOARD_MISSING "there is no npm: scripts/setup installs it")
elseif(PACELINE_SANITIZE AND PACELINE_DASHBOARD STREQUAL AUTO)
  set(PACELINE_DASHBOARD_MISSING "builds with sanitizers do without")
endif()
if(PACELINE_DASHBOARD_MISSING AND PACELINE_DASHBOARD STREQUAL ON)
  message(FATAL_ERROR "PACELINE_DASHBOARD=ON, and ${PACELINE_DASHBOARD_MISSING}")
elseif(PACELINE_DASHBOARD_MISSING)
  message(STATUS "Dashboard: its page is not in this build (${PACELINE_DASHBOARD_MISSING})")
else()
  message(STATUS "Dashboard: its page is in this build")
endif()

function(paceline_embed_dashboard target)
  set(source ${CMAKE_BINARY_DIR}/generated/dashboard/embedded_assets.cc)
  set(command ${CMAKE_COMMAND} -DOUTPUT=${source} -DREQUIRED=${PACELINE_DASHBOARD})
  set(depends ${CMAKE_SOURCE_DIR}/cmake/embed-dashboard.cmake)
  if(NOT PACELINE_DASHBOARD_MISSING)
    list(APPEND command -DBUILD=${CMAKE_SOURCE_DIR}/dashboard/build)
    file(GLOB_RECURSE files CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/dashboard/src/* ${CMAKE_SOURCE_DIR}/dashboard/public/*)
    file(GLOB top CONFIGURE_DEPENDS LIST_DIRECTORIES FALSE ${CMAKE_SOURCE_DIR}/dashboard/*)
    list(APPEND depends ${files} ${top})
  endif()
  add_custom_command(
    OUTPUT ${source}
    COMMAND ${command} -P ${CMAKE_SOURCE_DIR}/cmake/embed-dashboard.cmake
    DEPENDS ${depends}
    COMMENT "Embedding the dashboard's page"
    VERBATIM)
  target_sources(${target} PRIVATE ${source})
  set_source_files_properties(${source} PROPERTIES SKIP_PRECOMPILE_HEADERS ON)
endfunction()
