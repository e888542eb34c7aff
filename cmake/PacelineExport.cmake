# What a user's own project finds after `cmake --install`: the runtime's libraries and headers, as Paceline::runtime
# (docs/custom-model.md). `cmake --install build/release --component Development` installs only this.
include(CMakePackageConfigHelpers)

set(gpu_libraries)
if(PACELINE_CUDA_ENABLED)
  set(gpu_libraries
      paceline_runtime_nccl paceline_runtime_optimizer_gpu paceline_runtime_tensor_gpu paceline_runtime_cuda paceline_runtime_cuda_kernels paceline_cuda)
endif()
install(TARGETS
    ${gpu_libraries}
    paceline_runtime paceline_runtime_device paceline_runtime_trainer paceline_runtime_catch_up paceline_runtime_exchange paceline_runtime_collective
    paceline_runtime_transport paceline_runtime_tensor paceline_runtime_tensor_kernels paceline_runtime_model
    paceline_runtime_optimizer paceline_runtime_pserver paceline_runtime_pserver_policy paceline_runtime_pserver_sparse
    paceline_runtime_data paceline_runtime_checkpoint paceline_runtime_member
    paceline_base paceline_proto_training paceline_proto_coordinator paceline_proto_telemetry paceline_dnnl
  EXPORT PacelineTargets
  ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT Development)

foreach(folder base runtime)
  install(DIRECTORY ${folder}/ DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/paceline/${folder} COMPONENT Development
          FILES_MATCHING PATTERN "*.h")
endforeach()
install(DIRECTORY ${CMAKE_BINARY_DIR}/generated/proto DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/paceline COMPONENT Development
        FILES_MATCHING PATTERN "*.pb.h")

set(config_folder ${CMAKE_INSTALL_LIBDIR}/cmake/Paceline)
install(EXPORT PacelineTargets NAMESPACE Paceline:: DESTINATION ${config_folder} COMPONENT Development)
configure_package_config_file(cmake/PacelineConfig.cmake.in ${CMAKE_BINARY_DIR}/PacelineConfig.cmake
                              INSTALL_DESTINATION ${config_folder})
write_basic_package_version_file(${CMAKE_BINARY_DIR}/PacelineConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_BINARY_DIR}/PacelineConfig.cmake ${CMAKE_BINARY_DIR}/PacelineConfigVersion.cmake
        DESTINATION ${config_folder} COMPONENT Development)
