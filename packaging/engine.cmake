# llama.cpp's command-line library, which has no switch where llama-cpp-python forces it on.
set(LLAMA_BUILD_COMMON OFF)

# No AMX: llama.cpp hands its tile configuration over by one pointer, and GCC may leave out what
# stands behind its first 8 bytes; then the first answer ends the program (ggml-org/llama.cpp#20824,
# #26954). The flag that turns a processor's AMX on comes later, so that the macro is what has to go.
if(NOT MSVC)
    add_compile_options(-U__AMX_TILE__ -U__AMX_INT8__ -U__AMX_BF16__)
endif()

include("${CMAKE_CURRENT_LIST_DIR}/engine_attention.cmake")
