(module
  (type (;0;) (func (param i32 i32 i32)))
  (type (;1;) (func))
  (import "env" "memory" (memory (;0;) 1))
  (func (;0;) (type 0) (param i32 i32 i32)
    (local i32 i32 i32 i32 i32 i32 v128)
    i32.const 0
    local.set 3
    block  ;; label = @1
      loop  ;; label = @2
        local.get 3
        i32.const 5
        i32.lt_s
        i32.eqz
        br_if 1 (;@1;)
        i32.const 0
        local.set 4
        local.get 0
        local.get 3
        i32.const 4
        i32.mul
        local.get 4
        i32.add
        i32.const 2
        i32.shl
        i32.add
        local.set 5
        local.get 1
        local.get 4
        i32.const 2
        i32.shl
        i32.add
        local.set 6
        local.get 2
        local.get 3
        i32.const 4
        i32.mul
        local.get 4
        i32.add
        i32.const 2
        i32.shl
        i32.add
        local.set 7
        i32.const 0
        local.set 8
        block  ;; label = @3
          loop  ;; label = @4
            local.get 8
            i32.const 0
            i32.le_s
            i32.eqz
            br_if 1 (;@3;)
            local.get 5
            v128.load align=4
            local.get 6
            v128.load align=4
            f32x4.mul
            v128.const i32x4 0x3f800000 0x3f800000 0x3f800000 0x3f800000
            f32x4.add
            v128.const i32x4 0x00000000 0x00000000 0x00000000 0x00000000
            f32x4.max
            local.set 9
            local.get 7
            local.get 9
            v128.store align=4
            local.get 5
            i32.const 16
            i32.add
            local.set 5
            local.get 6
            i32.const 16
            i32.add
            local.set 6
            local.get 7
            i32.const 16
            i32.add
            local.set 7
            local.get 8
            i32.const 4
            i32.add
            local.set 8
            br 0 (;@4;)
          end
        end
        local.get 3
        i32.const 1
        i32.add
        local.set 3
        br 0 (;@2;)
      end
    end)
  (func (;1;) (type 1)
    i32.const 0
    i32.const 128
    i32.const 0
    call 0)
  (func (;2;) (type 1)
    call 1)
  (export "run" (func 2)))
