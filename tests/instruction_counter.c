/* A plug-in of qemu's: how many instructions a program for another machine takes. Prints the number when it ends.
 *
 * The declarations stand here because the header of the plug-in interface is in no package; see qemu's docs/devel/tcg-plugins. */
#include <inttypes.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

typedef uint64_t plugin_id;
struct block;
typedef void (*when_translated)(plugin_id id, struct block* block);
typedef void (*when_run)(unsigned int cpu, void* data);
typedef void (*when_over)(plugin_id id, void* data);

void qemu_plugin_register_vcpu_tb_trans_cb(plugin_id id, when_translated call);
void qemu_plugin_register_vcpu_tb_exec_cb(struct block* block, when_run call, int flags, void* data);
void qemu_plugin_register_atexit_cb(plugin_id id, when_over call, void* data);
size_t qemu_plugin_tb_n_insns(const struct block* block);

__attribute__((visibility("default"))) int qemu_plugin_version = 1;

static uint64_t instructions;

static void run(unsigned int cpu, void* data) {
    (void)cpu;
    __atomic_fetch_add(&instructions, (uint64_t)(uintptr_t)data, __ATOMIC_RELAXED);
}

static void translated(plugin_id id, struct block* block) {
    (void)id;
    qemu_plugin_register_vcpu_tb_exec_cb(block, run, 0, (void*)(uintptr_t)qemu_plugin_tb_n_insns(block));
}

static void over(plugin_id id, void* data) {
    (void)id;
    (void)data;
    fprintf(stderr, "%" PRIu64 " instructions\n", instructions);
}

__attribute__((visibility("default"))) int qemu_plugin_install(plugin_id id, const void* info, int count, char** arguments) {
    (void)info;
    (void)count;
    (void)arguments;
    qemu_plugin_register_vcpu_tb_trans_cb(id, translated);
    qemu_plugin_register_atexit_cb(id, over, NULL);
    return 0;
}
