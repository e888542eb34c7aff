# Everything here is a Debian 12 package (scripts/setup); the reason for each stands in docs/architecture.md.
find_package(Threads REQUIRED)
find_package(absl REQUIRED)
find_package(Protobuf REQUIRED)
find_package(gRPC CONFIG REQUIRED)
find_package(yaml-cpp REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(spdlog REQUIRED)
find_package(CLI11 REQUIRED)
find_package(ZLIB REQUIRED)
find_package(OpenSSL REQUIRED)
find_package(CURL REQUIRED)
find_package(SQLite3 REQUIRED)

# Debian's dnnl-config.cmake asks for OpenCL's headers, which a CPU build has no use for: take header and library directly.
find_path(PACELINE_DNNL_INCLUDE oneapi/dnnl/dnnl.hpp REQUIRED)
find_library(PACELINE_DNNL_LIBRARY dnnl REQUIRED)
add_library(paceline_dnnl INTERFACE)
target_include_directories(paceline_dnnl SYSTEM INTERFACE $<BUILD_INTERFACE:${PACELINE_DNNL_INCLUDE}>)
target_link_libraries(paceline_dnnl INTERFACE $<BUILD_INTERFACE:${PACELINE_DNNL_LIBRARY}> $<INSTALL_INTERFACE:dnnl>)

# Debian's libmicrohttpd comes without a CMake configuration.
find_path(PACELINE_MICROHTTPD_INCLUDE microhttpd.h REQUIRED)
find_library(PACELINE_MICROHTTPD_LIBRARY microhttpd REQUIRED)
add_library(paceline_microhttpd INTERFACE)
target_include_directories(paceline_microhttpd SYSTEM INTERFACE $<BUILD_INTERFACE:${PACELINE_MICROHTTPD_INCLUDE}>)
target_link_libraries(paceline_microhttpd INTERFACE $<BUILD_INTERFACE:${PACELINE_MICROHTTPD_LIBRARY}> $<INSTALL_INTERFACE:microhttpd>)

if(PACELINE_TESTS)
  find_package(GTest REQUIRED)
endif()
if(PACELINE_BENCHMARKS)
  find_package(benchmark REQUIRED)
endif()
